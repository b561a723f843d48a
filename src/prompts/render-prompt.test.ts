import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuTime } from '../../test/kit/cpu-time.ts'
import { MusterError } from '../kernel/errors.ts'
import { type PromptValues, renderPrompt, unknownVariables, usesVariable } from './render-prompt.ts'

const user = (content: string) => [{ role: 'user' as const, content }]
const rendered = (content: string, values: PromptValues): string =>
  renderPrompt(user(content), values)[0]?.content ?? ''

const cases: { name: string; content: string; values: PromptValues; gives: string }[] = [
  {
    name: 'every place of a variable',
    content: '{{USER_INPUT}}, {{USER_INPUT}}',
    values: { USER_INPUT: 'a' },
    gives: 'a, a',
  },
  {
    name: 'all four variables',
    content: '{{USER_INPUT}}|{{PLAN_JSON}}|{{HISTORY_JSON}}|{{CONTEXT_METADATA}}',
    values: { USER_INPUT: 'u', PLAN_JSON: '[1]', HISTORY_JSON: '[2]', CONTEXT_METADATA: '{}' },
    gives: 'u|[1]|[2]|{}',
  },
  { name: 'blanks inside the braces', content: '{{ USER_INPUT }}', values: { USER_INPUT: 'a' }, gives: 'a' },
  { name: 'a variable without a value', content: '<{{PLAN_JSON}}>', values: {}, gives: '<>' },
  {
    name: 'a value that holds a variable',
    content: '{{USER_INPUT}} {{PLAN_JSON}}',
    values: { USER_INPUT: '{{PLAN_JSON}}', PLAN_JSON: '{{USER_INPUT}}' },
    gives: '{{PLAN_JSON}} {{USER_INPUT}}',
  },
  {
    name: 'a value that makes a variable with its surroundings',
    content: '{{{USER_INPUT}}}',
    values: { USER_INPUT: '{PLAN_JSON}', PLAN_JSON: 'no' },
    gives: '{{PLAN_JSON}}',
  },
  {
    name: 'the signs of a replacement',
    content: '{{USER_INPUT}}',
    values: { USER_INPUT: "$& $1 $' $$" },
    gives: "$& $1 $' $$",
  },
  {
    name: 'names that are not variables',
    content: '{{input}} {{USER_INPTU}}',
    values: { USER_INPUT: 'a' },
    gives: '{{input}} {{USER_INPTU}}',
  },
  {
    name: 'half a variable',
    content: '{{USER_INPUT} {USER_INPUT}}',
    values: { USER_INPUT: 'a' },
    gives: '{{USER_INPUT} {USER_INPUT}}',
  },
]

for (const { name, content, values, gives } of cases) {
  test(`rendering a prompt: ${name}`, () => assert.equal(rendered(content, values), gives))
}

test('all messages are rendered, and their roles stay', () => {
  const messages = [{ role: 'system' as const, content: 'S {{USER_INPUT}}' }, ...user('U {{USER_INPUT}}')]
  const before = structuredClone(messages)
  assert.deepEqual(renderPrompt(messages, { USER_INPUT: 'x' }), [
    { role: 'system', content: 'S x' },
    { role: 'user', content: 'U x' },
  ])
  assert.deepEqual(messages, before)
})

test('a prompt that grows beyond 16 MiB is refused before it is made', () => {
  const content = '{{USER_INPUT}}'.repeat(10_000)
  const startedAt = cpuTime()
  assert.throws(
    () => renderPrompt(user(content), { USER_INPUT: 'x'.repeat(1_000_000) }),
    (error) => error instanceof MusterError && error.code === 'PAYLOAD_TOO_LARGE',
  )
  assert.ok(cpuTime() - startedAt < 1_000)
  assert.equal(rendered(content, { USER_INPUT: 'x'.repeat(1_000) }).length, 10_000_000)
})

test('names in double braces that are not variables are returned, each once', () => {
  const messages = [...user('{{USER_INPUT}} {{ FOO }} {{input.name}} {{FOO}}'), ...user('{{BAR}}')]
  assert.deepEqual(unknownVariables(messages), ['FOO', 'input.name', 'BAR'])
  assert.equal(unknownVariables(user(Array.from({ length: 500 }, (_, i) => `{{N${i}}}`).join(''))).length, 100)
})

test('a variable that is used in any message counts as used', () => {
  assert.equal(usesVariable([...user('a'), ...user('{{PLAN_JSON}} {{USER_INPUT}}')], 'USER_INPUT'), true)
  assert.equal(usesVariable(user('{{PLAN_JSON}}'), 'USER_INPUT'), false)
})
