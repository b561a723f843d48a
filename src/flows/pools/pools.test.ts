import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInPatterns } from '../machine/built-in-patterns.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import type { Adaptive } from '../machine/patterns/adaptive.ts'
import type { MapReduce } from '../machine/patterns/map-reduce.ts'
import { createFlowPools, type FlowPools, type PoolOf } from './pools.ts'

const node: Adaptive = { type: 'adaptive', topology: 'hierarchical', workers: 2, tasks: [], switch: false }
const part = (id: string, fields: Partial<Adaptive> = {}): PoolOf => poolOf(id, { ...node, ...fields })
function poolOf(id: string, of: Adaptive | MapReduce): PoolOf {
  const settings = builtInPatterns.of(of)?.pool?.(of)
  assert.ok(settings)
  return { id, settings: () => settings }
}
const task = (id: string, pool: PoolOf): FlowLeaf => ({
  id,
  nodeId: null,
  title: null,
  node: { type: 'task', function: 'f' },
  argumentOf: () => null,
  isEach: false,
  calls: 1,
  isSource: false,
  answer: null,
  part: null,
  attempt: 1,
  afterMs: 0,
  parentId: pool.id,
  after: [],
  replaces: [],
  stream: null,
  pool,
})
function fill(pools: FlowPools, pool: PoolOf, count = 4): void {
  for (let place = 0; place < count; place++) pools.add(pool, task(`${pool.id}/${place}`, pool))
}
const switches = (pools: FlowPools) => pools.switched().map(({ pool, from, to, moved }) => [pool, from, to, moved])

test('a wish switches parts under way once, and later parts when they begin', () => {
  const pools = createFlowPools()
  fill(pools, part('a'))
  assert.equal(pools.take(9).length, 2)
  pools.want('mesh', true)
  assert.deepEqual(switches(pools), [['a', 'hierarchical', 'mesh', 2]])
  assert.deepEqual(switches(pools), [])
  fill(pools, part('b'))
  fill(pools, part('c', { topology: 'mesh' }))
  assert.equal(pools.take(9).length, 4)
  assert.deepEqual(switches(pools), [['b', 'hierarchical', 'mesh', 4]])
})

test('an old wish does not undo a later switch; a new wish does', () => {
  for (const [isNew, told] of [
    [false, []],
    [true, [['a', 'star', 'mesh', 0]]],
  ] as const) {
    const pools = createFlowPools()
    pools.restore('a', 'star')
    pools.want('mesh', isNew)
    fill(pools, part('a'))
    assert.deepEqual(switches(pools), told)
    assert.equal(pools.take(9).length, 2)
    assert.deepEqual(switches(pools), [])
  }
})

test('a wish for the custom topology switches only parts that have edges', () => {
  const pools = createFlowPools()
  fill(pools, part('a'))
  fill(pools, part('b', { edges: [['w1', 'w2']] }))
  pools.add(poolOf('c', { type: 'map_reduce', items: [], workers: 1, map: 'f', reduce: 'f' }), task('c/0', part('c')))
  pools.want('custom', true)
  assert.deepEqual(switches(pools), [['b', 'hierarchical', 'custom', 4]])
})

test('a worker that was at a leaf before the takeover gets no other leaf', () => {
  const pools = createFlowPools()
  const a = part('a')
  const data = { task_id: 'a/0', name: 'f', attempt: 1, worker: 'w1' }
  pools.recall([{ kind: 'task.started', data }])
  const resumed = task('a/0', a)
  pools.resume(resumed)
  for (const id of ['a/1', 'a/2', 'a/3']) pools.add(a, task(id, a))
  assert.deepEqual(
    pools.take(9).map(({ worker }) => worker),
    ['w2'],
  )
  pools.done(resumed, 5, true)
  assert.deepEqual(
    pools.take(9).map(({ worker }) => worker),
    ['w1'],
  )
})

test('where there is not room for all, each part has its turn', () => {
  const pools = createFlowPools()
  fill(pools, part('a', { workers: 9 }))
  fill(pools, part('b', { workers: 9 }))
  const taken = [1, 2, 3].map(() =>
    pools
      .take(2)
      .map(({ leaf: { id } }) => id.slice(0, 1))
      .join(''),
  )
  assert.deepEqual(taken, ['aa', 'bb', 'aa'])
})

test('a leaf that was dropped while it waited is not taken, and its worker is free for the next leaf', () => {
  const pools = createFlowPools()
  fill(pools, part('a'))
  pools.remove(new Set(['a/0', 'a/1', 'a/2']))
  assert.deepEqual(
    pools.take(9).map(({ leaf: { id } }) => id),
    ['a/3'],
  )
  assert.equal(pools.waitingCount(), 0)
})
