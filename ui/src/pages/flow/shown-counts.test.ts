import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shownCounts } from './shown-counts.ts'

const none = { completed: 0, running: 0, blocked: 0, failed: 0, skipped: 0, pending: 0 }
const progress = { total: 14, pending: 9, running: 2, completed: 3, failed: 0, skipped: 0 }
const totals = { counts: { ...none, completed: 3, running: 1, blocked: 1 }, all: 5 }

test('tasks that a flow run under way expects, and that are not listed yet, are pending', () => {
  const { counts, unlisted } = shownCounts({ status: 'running', progress }, totals)
  assert.deepEqual(counts, { ...none, completed: 3, running: 1, blocked: 1, pending: 9 })
  assert.equal(unlisted, 9)
})

test('listed pending tasks are not counted twice', () => {
  const listed = { counts: { ...totals.counts, pending: 4 }, all: 9 }
  const { counts, unlisted } = shownCounts({ status: 'running', progress }, listed)
  assert.deepEqual([counts.pending, unlisted], [9, 5])
})

test('the counters add up to the total where the list is newer than the row of the flow run', () => {
  const newer = { counts: { ...none, completed: 4, running: 4 }, all: 8 }
  assert.equal(shownCounts({ status: 'running', progress }, newer).counts.pending, 6)
  const grown = { counts: { ...none, completed: 7, running: 9 }, all: 16 }
  assert.equal(shownCounts({ status: 'running', progress }, grown).counts.pending, 0)
})

test('the stages of a pipeline under way are no pending tasks', () => {
  const stages = { ...progress, total: 3, pending: 0, running: 3, completed: 0 }
  const one = { counts: { ...none, running: 1 }, all: 1 }
  assert.deepEqual(shownCounts({ status: 'running', progress: stages }, one), { counts: one.counts, unlisted: 0 })
})

test('a flow run that has ended counts only its tasks', () => {
  const ended = { counts: { ...none, completed: 3, skipped: 2 }, all: 5 }
  assert.deepEqual(shownCounts({ status: 'cancelled', progress }, ended), { counts: ended.counts, unlisted: 0 })
})

test('the row of the flow run is shown until its tasks are read', () => {
  const { counts } = shownCounts({ status: 'running', progress }, { counts: none, all: 0 })
  assert.deepEqual(counts, { ...none, completed: 3, running: 2, pending: 9 })
})
