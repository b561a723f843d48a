import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskRow } from './flow-store.ts'
import { busyIn, criticalPath, groupRows, ticksOf, waitingFor } from './timeline-scale.ts'

const row = (id: string, from: number | null, to: number | null, depends_on: string[] = []): TaskRow => ({
  id,
  name: id,
  kind: 'function',
  parent_id: null,
  depends_on,
  worker: null,
  status: 'running',
  attempts: 1,
  usage: null,
  run_id: null,
  error: null,
  stage: 2,
  waitingRuns: [],
  waitMark: 0,
  start_at: from === null ? null : new Date(from).toISOString(),
  end_at: to === null ? null : new Date(to).toISOString(),
})

test('ticks are round distances from the start, a handful of them', () => {
  assert.deepEqual(ticksOf({ from: 1_000, to: 31_000 }, 1_000), [5_000, 10_000, 15_000, 20_000, 25_000])
  assert.deepEqual(ticksOf({ from: 100_000, to: 130_000 }, 0), [100_000, 105_000, 110_000, 115_000, 120_000, 125_000])
  assert.ok(ticksOf({ from: 0, to: 90 * 3_600_000 }, 0).length <= 6)
})

test('tasks under way are counted in each part of the time', () => {
  const rows = [row('a', 0, 40), row('b', 20, null), row('c', null, null), row('d', 90, 95)]
  assert.deepEqual(busyIn(rows, { from: 0, to: 100 }, 5), [1, 2, 1, 1, 2])
})

test('the critical path leads from the task that ends last to the first one it waited for', () => {
  const rows = [
    row('a', 0, 10),
    row('b', 0, 30),
    row('c', 30, 40, ['a', 'b']),
    row('d', 30, 90, ['b']),
    row('e', null, null, ['d']),
  ]
  assert.deepEqual([...criticalPath(rows)], ['d', 'b'])
  assert.deepEqual(
    waitingFor(rows, 'b').map(({ id }) => id),
    ['c', 'd'],
  )
})

test('dependencies in a circle end the path', () => {
  assert.deepEqual([...criticalPath([row('a', 0, 10, ['b']), row('b', 0, 9, ['a'])])], ['a', 'b'])
})

test('rows stand under their patterns where there are several with several tasks each', () => {
  const parents: Record<string, string> = { a: 'x', b: 'y', c: 'x', d: 'y' }
  const rows = groupRows(['a', 'b', 'c', 'd'], (id) => parents[id] ?? null, new Set(['y']))
  assert.deepEqual(
    rows.map(({ type, id }) => `${type} ${id}`),
    ['group x', 'task a', 'task c', 'group y'],
  )
  assert.equal(groupRows(['a', 'c'], (id) => parents[id] ?? null, new Set()).length, 2)
})
