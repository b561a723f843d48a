import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ListedPrompt, System } from '../../api/prompt-shapes.ts'
import type { Me } from '../../api/shapes.ts'
import {
  ALONE,
  authorOf,
  chooseVariants,
  groupPrompts,
  namesOfLive,
  partsOf,
  textOf,
  unknownVariables,
} from './prompt-text.ts'

const listed = (prompt_id: string, variant_id: string, more: Partial<ListedPrompt> = {}): ListedPrompt => ({
  project_id: 'p',
  prompt_id,
  variant_id,
  version: 1,
  seeded: false,
  required: false,
  actor: { type: 'user', id: 'u' },
  created_at: '2026-01-01T00:00:00.000Z',
  deleted: false,
  actor_name: null,
  ...more,
})

const me: Me = {
  type: 'user',
  id: 'u',
  email: 'a@example.com',
  name: null,
  instance_admin: false,
  has_password: true,
  projects: [],
}

test('a text names the role of each message; names in braces that are no variables are found once', () => {
  const messages = [
    { role: 'system' as const, content: 'Plan {{WORK}}.' },
    { role: 'user' as const, content: '{{USER_INPUT}} {{ WORK }}' },
  ]
  assert.equal(textOf(messages), '[system]\nPlan {{WORK}}.\n\n[user]\n{{USER_INPUT}} {{ WORK }}')
  assert.deepEqual(unknownVariables(messages), ['WORK'])
})

test('variants are grouped by their prompt, and deleted ones do not count as live', () => {
  const [first, second] = groupPrompts([
    listed('a', 'blue', { required: true }),
    listed('a', 'green', { deleted: true }),
    listed('b', 'blue'),
  ])
  assert.deepEqual([first?.promptId, first?.isRequired, first?.variants.length], ['a', true, 2])
  assert.deepEqual(first && namesOfLive(first), ['blue'])
  assert.equal(second?.isRequired, false)
})

const chosen: [
  names: string[],
  asked: { variant?: string; with?: string },
  variant: string | null,
  other: string | null,
][] = [
  [['blue', 'green'], {}, 'blue', 'green'],
  [['blue', 'green'], { variant: 'green' }, 'green', 'blue'],
  [['blue', 'green'], { with: ALONE }, 'blue', null],
  [['blue', 'green'], { variant: 'green', with: 'green' }, 'green', null],
  [['blue'], {}, 'blue', null],
  [['blue'], { variant: 'gone' }, 'gone', 'blue'],
  [[], {}, null, null],
]

for (const [names, asked, variant, other] of chosen) {
  test(`of ${names} with ${JSON.stringify(asked)}, ${variant} stands beside ${other}`, () => {
    assert.deepEqual(chooseVariants(names, asked), { variant, other })
  })
}

test('an author is named as well as it is known', () => {
  const by = (type: string, id: string | null, actor_name: string | null = null) =>
    authorOf({ actor: { type, id }, seeded: false, actor_name }, me)
  assert.deepEqual(
    [by('user', 'u'), by('user', 'x'), by('user', 'x', 'b@example.com'), by('key', 'k'), by('system', null)],
    ['you', 'a person', 'b@example.com', 'an API key', 'Muster'],
  )
})

test('the parts of a system tell which of their prompts the variant lacks', () => {
  const system: System = {
    variant: 'red',
    updated_at: null,
    traffic: 0,
    supervisor: { prompt_id: 'planner', model: null },
    specialists: [
      {
        name: 'prices',
        prompt_id: 'price',
        model: { provider: 'openai', name: 'x', max_output_tokens: 100 },
        tools: ['t'],
        description: 'sums',
      },
    ],
    finalizer: { prompt_id: 'end', model: null },
    escalation: { prompt_id: 'ask', model: null },
  }
  const parts = partsOf(system, [
    listed('planner', 'red'),
    listed('price', 'blue'),
    listed('end', 'red', { deleted: true }),
  ])
  assert.deepEqual(
    parts.map(({ name, isMissing, model }) => [name, isMissing, model]),
    [
      ['Planner', false, null],
      ['prices', true, 'openai / x'],
      ['Finalizer', true, null],
      ['Escalation', true, null],
    ],
  )
})
