import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shownProgress } from './shown-progress.ts'

const none = { completed: 0, running: 0, blocked: 0, failed: 0, skipped: 0, pending: 0 }
const progress = { total: 14, pending: 9, running: 2, completed: 3, failed: 0, skipped: 0 }
const totals = { counts: { ...none, completed: 3, running: 1, blocked: 1 }, all: 5 }

test('tasks that a flow run under way expects, and that are not listed yet, are pending', () => {
  const { counts, percent, unlisted } = shownProgress({ status: 'running', progress }, totals)
  assert.deepEqual(counts, { ...none, completed: 3, running: 1, blocked: 1, pending: 9 })
  assert.deepEqual([percent, unlisted], [21, 9])
})

test('listed pending tasks are not counted twice', () => {
  const listed = { counts: { ...totals.counts, pending: 4 }, all: 9 }
  const { counts, unlisted } = shownProgress({ status: 'running', progress }, listed)
  assert.deepEqual([counts.pending, unlisted], [9, 5])
})

test('the percent follows the counters where the row of the flow run is older than they are', () => {
  const later = { counts: { ...none, completed: 7, running: 9 }, all: 16 }
  const { counts, percent } = shownProgress({ status: 'running', progress }, later)
  assert.deepEqual([counts.completed, counts.pending, percent], [7, 0, 43])
})

test('a flow run that has ended counts only its tasks', () => {
  const ended = { counts: { ...none, completed: 3, skipped: 2 }, all: 5 }
  const { counts, percent } = shownProgress({ status: 'cancelled', progress }, ended)
  assert.deepEqual([counts, percent], [ended.counts, 21])
})

test('the row of the flow run is shown until its tasks are read', () => {
  const { counts, percent, unlisted } = shownProgress({ status: 'running', progress }, { counts: none, all: 0 })
  assert.deepEqual(counts, { ...none, completed: 3, running: 2, pending: 9 })
  assert.deepEqual([percent, unlisted], [21, 0])
})
