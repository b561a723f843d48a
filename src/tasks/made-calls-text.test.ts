import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linesOf } from './made-calls-text.ts'

const calls = (count: number, text: string) =>
  Array.from({ length: count }, (_, nr) => ({
    ...{ run_id: 'r', step: 1, call_id: `c${nr}`, tool: 'refund', args: { nr, text }, result: { text } },
    ...{ key: `key-${nr}-end`, effect: 'unsafe' as const, is_finished: true, at: new Date(0) },
  }))

test('a call stands with its arguments, its result, its time and its key', () => {
  const [line] = linesOf(calls(1, 'A')).split('\n')
  const expected = '- refund {"nr":0,"text":"A"} → {"text":"A"} (1970-01-01T00:00:00.000Z, idempotency key key-0-end)'
  assert.equal(line, expected)
})

test('every one of many calls has its line, with shorter values', () => {
  const text = linesOf(calls(300, 'x'.repeat(1_000)))
  assert.equal(text.split('\n').length, 300)
  assert.match(text, /key-299-end\)$/)
  assert.ok(text.length < 120_000)
})
