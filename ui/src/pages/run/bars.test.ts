import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunWait, Step } from '../../../../src/kernel/run.ts'
import { barsOf } from './bars.ts'

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
const NOW = Date.parse(at(100))
const model = (seq: number, second: number): Step => ({
  step: seq,
  seq,
  kind: 'model',
  text: '',
  tool_calls: [],
  finish_reason: 'stop',
  usage: { input_tokens: 1, output_tokens: 1, estimated: false, cost_usd: null },
  started_at: at(second),
  duration: 1_000,
})
const tool = (seq: number, second: number, name: string, blocked: 'budget' | null = null): Step => ({
  step: 1,
  seq,
  kind: 'tool',
  call_id: `call ${seq}`,
  name,
  args: {},
  result: 'yes',
  is_error: false,
  blocked,
  started_at: at(second),
  duration: 0,
})
const wait = (seq: number, second: number, reason: RunWait['reason'], duration: number | null): RunWait => ({
  seq,
  reason,
  started_at: at(second),
  duration,
})
const shown = (steps: Step[], waits: RunWait[]) =>
  barsOf(steps, waits, NOW).map(({ name, kind, ms }) => [name, kind, ms])

test('a question is the wait for its answer, and no call of 0 ms', () => {
  const steps = [model(2, 0), tool(6, 41, 'ask_human'), model(7, 41)]
  assert.deepEqual(shown(steps, [wait(4, 1, 'human', 40_000)]), [
    ['Step 2', 'model', 1_000],
    ['Wait: person', 'wait', 40_000],
    ['Step 7', 'model', 1_000],
  ])
})

test('a question that was refused, or answered before the run could wait, stays a call', () => {
  assert.deepEqual(shown([tool(3, 41, 'ask_human', 'budget')], [wait(2, 1, 'human', 40_000)]).length, 2)
  assert.deepEqual(shown([tool(3, 5, 'ask_human')], []), [['ask_human', 'tool', 0]])
  assert.deepEqual(shown([tool(3, 41, 'look')], [wait(2, 1, 'human', 40_000)]).length, 2)
})

test('a wait under way lasts until now', () => {
  assert.deepEqual(shown([], [wait(4, 40, 'halted', null)]), [['Wait: halt', 'wait', 60_000]])
})

test('waits for tokens without a step between them are one', () => {
  const waits = [wait(4, 0, 'budget', 9_000), wait(6, 10, 'budget', 9_000), wait(8, 20, 'budget', null)]
  assert.deepEqual(shown([], waits), [['Wait: tokens', 'wait', 100_000]])
  assert.deepEqual(
    shown([model(7, 19)], waits).map(([, , ms]) => ms),
    [19_000, 1_000, 80_000],
  )
})
