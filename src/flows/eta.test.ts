import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowRunStatus } from '../kernel/flow-run.ts'
import { etaOf } from './eta.ts'

const started_at = new Date('2026-01-01T00:00:00Z')
const at = (seconds: number): Date => new Date(started_at.getTime() + seconds * 1_000)
const run = (completed: number, total: number, seconds: number, status: FlowRunStatus = 'running') => ({
  ...{ status, started_at, cancel_requested_at: null, read_at: at(seconds) },
  progress: { total, pending: total - completed, running: 0, completed, failed: 0, skipped: 0 },
})

test('half-way through a uniform flow as much time is left as has passed', () => {
  assert.deepEqual(etaOf(run(5, 10, 60)), at(120))
  assert.deepEqual(etaOf(run(1, 10, 6)), at(60))
})

test('what nobody can know is not told: before the first leaf, after the last, and of flows that do not run or are cancelled', () => {
  assert.equal(etaOf(run(0, 10, 60)), null)
  assert.equal(etaOf(run(10, 10, 60)), null)
  for (const status of ['queued', 'completed', 'failed', 'cancelled'] as const) {
    assert.equal(etaOf(run(5, 10, 60, status)), null)
  }
  assert.equal(etaOf({ ...run(5, 10, 60), started_at: null }), null)
  assert.equal(etaOf({ ...run(5, 10, 60), cancel_requested_at: at(50) }), null)
})

test('of a pipeline the things that go through it count', () => {
  const { progress, ...rest } = run(0, 3, 30)
  const items = { total: 100, completed: 20, failed: 0, skipped: 5 }
  assert.deepEqual(etaOf({ ...rest, progress: { ...progress, items } }), at(120))
})
