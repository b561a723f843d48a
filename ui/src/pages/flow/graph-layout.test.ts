import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskRow } from './flow-store.ts'
import { layOut } from './graph-layout.ts'

const row = (id: string, depends_on: string[] = []): TaskRow => ({
  id,
  name: id,
  kind: 'function',
  parent_id: 'root',
  depends_on,
  worker: null,
  status: 'pending',
  attempts: 0,
  usage: null,
  run_id: null,
  error: null,
  stage: 0,
  waitingRuns: [],
  waitMark: 0,
  start_at: null,
  end_at: null,
})

test('a task stands right of the tasks that it waits for', () => {
  const { nodes, edges } = layOut([row('a'), row('b', ['a']), row('c', ['b', 'gone'])])
  const xs = ['a', 'b', 'c'].map((id) => nodes.find((node) => node.id === id)?.x ?? Number.NaN)
  assert.deepEqual(
    xs,
    xs.toSorted((a, b) => a - b),
  )
  assert.deepEqual(edges, [
    { from: 'a', to: 'b' },
    { from: 'b', to: 'c' },
  ])
})

test('tasks that wait for the same ones are one node of a large graph', () => {
  const maps = Array.from({ length: 2_500 }, (_, place) => row(`map ${place}`, ['plan']))
  const reduces = Array.from({ length: 2_500 }, (_, place) =>
    row(
      `reduce ${place}`,
      maps.slice(0, 20).map(({ id }) => id),
    ),
  )
  const { nodes, edges, leftOut } = layOut([row('plan'), ...maps, ...reduces])
  assert.deepEqual(
    nodes.map(({ ids }) => ids.length),
    [1, 2_500, 2_500],
  )
  assert.equal(edges.length, 2)
  assert.equal(leftOut, 0)
})

test('a graph that stays too large says how many tasks it leaves out', () => {
  const chain = Array.from({ length: 700 }, (_, place) => row(`t${place}`, place === 0 ? [] : [`t${place - 1}`]))
  const { nodes, leftOut } = layOut(chain)
  assert.equal(nodes.length + leftOut, 700)
  assert.ok(leftOut > 0)
})
