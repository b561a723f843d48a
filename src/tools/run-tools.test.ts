import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runTools } from './run-tools.ts'

const find = (name: string) => {
  const tool = runTools.find((each) => each.name === name)
  assert.ok(tool)
  return tool
}

test('each tool is called as its kind and tells the model what its arguments mean', () => {
  for (const tool of runTools) {
    assert.equal(tool.name, tool.kind)
    const properties = Object.values(tool.inputSchema.properties as Record<string, { description?: string }>) // ours
    assert.ok(properties.length > 0 && properties.every((property) => property.description))
  }
})

test('arguments are taken as the contract names them, and nothing else', () => {
  const good: [string, unknown][] = [
    ['spawn_agent', { agent: 'writer', input: 'Write.' }],
    ['spawn_agent', { agent: 'writer', input: { topic: 'x' }, timeout: 1_000, max_steps: 3 }],
    ['ask_human', { question: 'May I?' }],
    ['finish_loop', {}],
    ['finish_loop', { result: 'done' }],
    ['finish_loop', { result: { rows: [1, 2] } }],
  ]
  for (const [name, args] of good) assert.deepEqual(find(name).parse(args), { ok: true, args })
  const bad: [string, unknown][] = [
    ['spawn_agent', { agent: 'writer' }],
    ['spawn_agent', { agent: 'writer', input: 7 }],
    ['spawn_agent', { agent: 'writer', input: 'x', timeout: 0 }],
    ['spawn_agent', { agent: 'writer', input: 'x', max_steps: 1.5 }],
    ['ask_human', { question: '' }],
    ['ask_human', { question: 'x', to: 'y' }],
    ['finish_loop', { results: 1 }],
  ]
  for (const [name, args] of bad) assert.equal(find(name).parse(args).ok, false, JSON.stringify(args))
})
