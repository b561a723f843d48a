import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressOf, cutAtWord, matches } from './jump-match.ts'

test('every word of the text begins a word of the entry', () => {
  assert.ok(matches('', 'Runs page'))
  assert.ok(matches('mcp', 'MCP servers settings'))
  assert.ok(matches('set aud', 'Audit settings'))
  assert.ok(!matches('erver', 'MCP servers'))
  assert.ok(!matches('set zebra', 'Audit settings'))
})

test('every kind of thing has its page', () => {
  const at = (kind: Parameters<typeof addressOf>[0]['kind']): string => addressOf({ kind, id: 'i', projectId: 'p' })
  assert.deepEqual(
    (['agent', 'run', 'flow', 'flow_run', 'object', 'task'] as const).map(at),
    ['agents/i', 'runs/i', 'flows/definitions/i', 'flows/i', 'objects/i', 'inbox?item=i'].map(
      (rest) => `/projects/p/${rest}`,
    ),
  )
})

test('a long text is cut behind a word, with a mark', () => {
  assert.equal(cutAtWord('Read the note', 13), 'Read the note')
  assert.equal(cutAtWord('Read the delivery note', 20), 'Read the delivery …')
  assert.equal(cutAtWord('task · Person, and more', 16), 'task · Person …')
  assert.equal(cutAtWord('x'.repeat(30), 10), `${'x'.repeat(9)}…`)
})
