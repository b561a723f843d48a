import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  counted,
  goesOn,
  goesOnSince,
  isOnTop,
  percentOf,
  stoppedSince,
  sumDays,
  usedShare,
  withoutShownByFlows,
} from './gather.ts'

const at = (text: string): number => Date.parse(text)
const ended = { pause_reason: null, created_at: '2026-01-01T00:00:00Z', completed_at: '2026-01-02T00:00:00Z' }

test('failed runs and runs that stopped count from the last visit on, waits do not', () => {
  const since = at('2026-01-01T12:00:00Z')
  assert.ok(stoppedSince({ ...ended, status: 'failed' }, since))
  assert.ok(!stoppedSince({ ...ended, status: 'failed' }, at('2026-01-02T00:00:01Z')))
  assert.ok(stoppedSince({ ...ended, status: 'paused', pause_reason: 'step_limit' }, since))
  assert.ok(!stoppedSince({ ...ended, status: 'paused', pause_reason: 'human' }, since))
  assert.ok(!stoppedSince({ ...ended, status: 'completed' }, since))
})

test('sub-runs and leaves of flows are not listed', () => {
  assert.ok(isOnTop({ parent_run_id: null, trigger: { type: 'manual' } }))
  assert.ok(!isOnTop({ parent_run_id: 'x', trigger: { type: 'manual' } }))
  assert.ok(!isOnTop({ parent_run_id: null, trigger: { type: 'flow' } }))
})

test('progress counts what needs no more work', () => {
  const none = { total: 0, pending: 0, running: 0, completed: 0, failed: 0, skipped: 0 }
  assert.equal(percentOf(none), 0)
  assert.equal(percentOf({ ...none, total: 8, completed: 3, failed: 1, skipped: 1, running: 3 }), 62)
})

test('amounts are added over the projects that have them', () => {
  const spent = (total_tokens: number, cost_usd: number | null) => ({ total_tokens, cost_usd })
  const days = [
    { today: spent(5, null), yesterday: spent(1, null) },
    { today: spent(7, 0.5), yesterday: spent(2, null) },
  ]
  assert.deepEqual(sumDays([null, undefined]), null)
  assert.deepEqual(sumDays([null, ...days]), { today: spent(12, 0.5), yesterday: spent(3, null) })
})

test('the share of used tokens is rounded down, and 0 for an agent without a limit', () => {
  const share = (token_used: number, token_allocation: number | null) => usedShare({ token_used, token_allocation })
  assert.deepEqual([share(90, 100), share(999, 1_000), share(5, null), share(0, 0)], [90, 99, 0, 0])
})

test('the run of an agent that is a flow is shown by its flow run', () => {
  const flows = [{ parent_run_id: 'a' }, { parent_run_id: null }]
  assert.deepEqual(withoutShownByFlows([{ id: 'a' }, { id: 'b' }], flows), [{ id: 'b' }])
})

test('a list goes on if its page has a next one, and no page that is not read yet does', () => {
  assert.ok(!goesOn(undefined, { next_cursor: null }))
  assert.ok(goesOn({ next_cursor: null }, { next_cursor: 'x' }))
  assert.deepEqual([counted(20, true), counted(7, false)], ['20+', '7'])
})

test('a list of failures goes on if the failures after its page may be new as well', () => {
  const page = (next_cursor: string | null, ...days: string[]) => ({
    items: days.map((day) => ({ created_at: `2026-01-${day}T00:00:00Z` })),
    next_cursor,
  })
  const since = at('2026-01-05T00:00:00Z')
  assert.ok(goesOnSince(since, page('x', '08', '06')))
  assert.ok(!goesOnSince(since, page('x', '08', '04')))
  assert.ok(!goesOnSince(since, page(null, '08', '06'), page('x'), undefined))
  assert.ok(goesOnSince(since, undefined, page('x', '05')))
})
