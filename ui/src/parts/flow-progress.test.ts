import assert from 'node:assert/strict'
import { test } from 'node:test'
import { statusOfFlow } from '../api/flows.ts'
import { etaOf, percentDone } from './flow-progress.ts'

test('an ETA is a rough time, in words where it is not known or over', () => {
  const inMs = (ms: number): string | null => etaOf('running', new Date(1_000_000 + ms).toISOString(), 1_000_000)
  assert.equal(etaOf('queued', null, 0), 'not known yet')
  assert.deepEqual([-5_000, 1_000, 4_400, 33_000, 115_000].map(inMs), [
    'any moment',
    'any moment',
    '4s',
    '35s',
    '1m 55s',
  ])
})

test('a flow run that does not go on has no ETA, whatever it was told before', () => {
  const progress = { total: 2, pending: 1, running: 1, completed: 0, failed: 0, skipped: 0 }
  const run = { status: 'running', cancel_requested_at: null, progress, waiting: 0 } as const
  const eta = new Date(60_000).toISOString()
  assert.equal(etaOf(statusOfFlow(run, false), eta, 0), '1m 0s')
  assert.equal(statusOfFlow(run, true), 'halted')
  assert.equal(etaOf(statusOfFlow(run, true), eta, 0), null)
  assert.equal(etaOf(statusOfFlow({ ...run, cancel_requested_at: eta }, false), eta, 0), null)
  assert.equal(statusOfFlow({ ...run, cancel_requested_at: eta }, true), 'cancelling')
  assert.equal(statusOfFlow({ ...run, status: 'completed' }, true), 'completed')
  assert.equal(statusOfFlow({ ...run, waiting: 1 }, false), 'waiting')
})

test('tasks that were left out count as done only where nothing went wrong', () => {
  const progress = { total: 10, pending: 0, running: 0, completed: 4, failed: 2, skipped: 4 }
  assert.equal(percentDone({ status: 'cancelled', progress }), 40)
  assert.equal(percentDone({ status: 'running', progress: { ...progress, skipped: 0, pending: 4 } }), 60)
  assert.equal(percentDone({ status: 'completed', progress }), 100)
  assert.equal(percentDone({ status: 'queued', progress: { ...progress, total: 0 } }), 0)
})

test('a flow run under way is never shown as done', () => {
  const progress = { total: 2, pending: 0, running: 0, completed: 2, failed: 0, skipped: 0 }
  assert.deepEqual(
    ['running', 'completed', 'failed'].map((status) => percentDone({ status, progress })),
    [99, 100, 100],
  )
})
