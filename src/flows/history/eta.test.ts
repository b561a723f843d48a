import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowRunStatus } from '../../kernel/flow-run.ts'
import { etaOf } from './eta.ts'

const started_at = new Date('2026-01-01T00:00:00Z')
const at = (seconds: number): Date => new Date(started_at.getTime() + seconds * 1_000)
const run = (completed: number, total: number, seconds: number, status: FlowRunStatus = 'running') => ({
  status,
  started_at,
  cancel_requested_at: null,
  people_waits: 0,
  waited: 0,
  read_at: at(seconds),
  progress: { total, pending: total - completed, running: 0, completed, failed: 0, skipped: 0 },
})

test('half-way through a uniform flow as much time is left as has passed', () => {
  assert.deepEqual(etaOf(run(5, 10, 60)), at(120))
  assert.deepEqual(etaOf(run(1, 10, 6)), at(60))
})

test('there is no estimate before the first leaf, after the last, or for a run that is not running', () => {
  assert.equal(etaOf(run(0, 10, 60)), null)
  assert.equal(etaOf(run(10, 10, 60)), null)
  for (const status of ['queued', 'completed', 'failed', 'cancelled'] as const) {
    assert.equal(etaOf(run(5, 10, 60, status)), null)
  }
  assert.equal(etaOf({ ...run(5, 10, 60), started_at: null }), null)
  assert.equal(etaOf({ ...run(5, 10, 60), cancel_requested_at: at(50) }), null)
})

test('the estimate for a pipeline counts its items', () => {
  const { progress, ...rest } = run(0, 3, 30)
  const items = { total: 100, completed: 20, failed: 0, skipped: 5 }
  assert.deepEqual(etaOf({ ...rest, progress: { ...progress, items } }), at(120))
})

test('measured runs of the same flow say when it ends; a run that takes longer needs its share of that for the rest', () => {
  const measured = { ms: 100_000, isMeasured: true }
  assert.deepEqual(etaOf(run(0, 4, 10), measured), at(100))
  assert.deepEqual(etaOf(run(1, 4, 90), measured), at(100))
  assert.deepEqual(etaOf(run(3, 4, 120), measured), at(145))
})

test('before the first leaf has ended the estimate says when, as long as that is to come', () => {
  const estimated = { ms: 100_000, isMeasured: false }
  assert.deepEqual(etaOf(run(0, 4, 10), estimated), at(100))
  assert.equal(etaOf(run(0, 4, 110), estimated), null)
  assert.deepEqual(etaOf(run(2, 4, 10), estimated), at(20), 'progress says more than an estimate')
})

test('nobody knows when a person answers, and the time of that wait says nothing about the rest', () => {
  assert.equal(etaOf({ ...run(5, 10, 60), people_waits: 1 }), null)
  assert.deepEqual(etaOf({ ...run(5, 10, 60), waited: 50_000 }), at(70))
  assert.deepEqual(etaOf({ ...run(0, 10, 60), waited: 50_000 }, { ms: 30_000, isMeasured: true }), at(80))
})
