import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type PromptVariable, requiredPrompts } from '../kernel/prompt.ts'
import { formatPromptText, parsePromptText } from './prompt-text.ts'
import { unknownVariables, usesVariable } from './render-prompt.ts'
import { loadShippedPrompts } from './shipped-prompts.ts'

const shipped = await loadShippedPrompts()
const folders: string[] = []
after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))))

test('every required prompt comes with Muster in blue and in green, and the two differ', () => {
  assert.deepEqual(
    shipped.all.map(({ promptId, variantId }) => `${promptId}/${variantId}`),
    requiredPrompts.flatMap((promptId) => [`${promptId}/blue`, `${promptId}/green`]).sort(),
  )
  for (const promptId of requiredPrompts) {
    assert.notDeepEqual(shipped.find(promptId, 'blue'), shipped.find(promptId, 'green'))
  }
})

for (const { promptId, variantId, messages } of shipped.all) {
  test(`${promptId}/${variantId} has a system and a user message, with the four variables in the latter`, () => {
    assert.deepEqual(
      messages.map(({ role }) => role),
      ['system', 'user'],
    )
    const [system, user] = messages
    assert.ok(system && user && system.content.length > 300)
    const all: PromptVariable[] = ['USER_INPUT', 'PLAN_JSON', 'HISTORY_JSON', 'CONTEXT_METADATA']
    for (const variable of all) {
      assert.ok(usesVariable([user], variable), variable)
      assert.ok(!usesVariable([system], variable), variable)
    }
    assert.deepEqual(unknownVariables(messages), [])
  })
}

const words: [promptId: string, ...words: RegExp[]][] = [
  [
    'supervisor_planner',
    /supervisor_decision/,
    /"delegate"/,
    /"finish"/,
    /"escalate"/,
    /"plan"/,
    /IN_PROGRESS/,
    /BLOCKED/,
  ],
  ['research_agent', /COMPLETED/, /NEEDS_ASSISTANCE/, /FAILED/],
  ['transform_agent', /COMPLETED/, /NEEDS_ASSISTANCE/, /FAILED/],
]

for (const [promptId, ...expected] of words) {
  test(`${promptId} names the fields of the decision that answers it`, () => {
    for (const variantId of ['blue', 'green']) {
      const text = shipped.find(promptId, variantId)?.[0]?.content ?? ''
      for (const word of expected) assert.match(text, word, variantId)
    }
  })
}

test('a prompt is read from its text, and its text from the prompt', () => {
  const text = '# A comment.\n\n[system]\n\nFirst.\n\nSecond [user] here.\n\n[user]\r\n  The task:\r\n# no comment\n\n'
  const messages = parsePromptText(text)
  assert.deepEqual(messages, [
    { role: 'system', content: 'First.\n\nSecond [user] here.' },
    { role: 'user', content: '  The task:\n# no comment' },
  ])
  assert.deepEqual(parsePromptText(formatPromptText(messages)), messages)
})

const broken: { name: string; file: string; text: string; says: RegExp }[] = [
  {
    name: 'text before the first role',
    file: 'a/blue.txt',
    text: 'Hello\n[user]\nx',
    says: /a\/blue\.txt .*begin with/,
  },
  { name: 'an unknown role', file: 'a/blue.txt', text: '[assistant]\nx', says: /a\/blue\.txt .*messages\.0\.role/ },
  { name: 'an empty message', file: 'a/blue.txt', text: '[system]\n\n[user]\nx', says: /messages\.0\.content/ },
  { name: 'nothing at all', file: 'a/blue.txt', text: '', says: /a\/blue\.txt cannot be used/ },
  { name: 'another kind of file', file: 'a/blue.md', text: '[user]\nx', says: /<prompt>\/<variant>\.txt/ },
]

for (const { name, file, text, says } of broken) {
  test(`a start is refused if a file is no prompt: ${name}`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'muster-prompts-'))
    folders.push(folder)
    await mkdir(join(folder, 'a'))
    await writeFile(join(folder, file), text)
    await assert.rejects(loadShippedPrompts(folder), says)
  })
}
