import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Adaptive } from '../kernel/flow.ts'
import { createFlowPools, type FlowPools, type PoolOf } from './flow-pools.ts'
import type { LeafTask } from './machine.ts'

const node: Adaptive = { type: 'adaptive', topology: 'hierarchical', workers: 2, tasks: [], switch: false }
const part = (id: string, fields: Partial<Adaptive> = {}): PoolOf => ({ id, node: { ...node, ...fields } })
const task = (id: string, pool: PoolOf): LeafTask => ({
  ...{
    id,
    nodeId: null,
    leaf: { type: 'task', function: 'f' },
    argumentOf: () => null,
    isEach: false,
    calls: 1,
    isSource: false,
    answer: null,
  },
  ...{ attempt: 1, afterMs: 0, parentId: pool.id, after: [], stream: null, pool },
})
function fill(pools: FlowPools, pool: PoolOf, count = 4): void {
  for (let place = 0; place < count; place++) pools.add(pool, task(`${pool.id}/${place}`, pool))
}
const switches = (pools: FlowPools) => pools.switched().map(({ pool, from, to, moved }) => [pool, from, to, moved])

test('a wish reaches what is under way once, and what begins later when it begins', () => {
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

test('an old wish does not undo what was switched since; a new one does', () => {
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

test('a wish for edges is heeded where there are some, and by nobody else', () => {
  const pools = createFlowPools()
  fill(pools, part('a'))
  fill(pools, part('b', { edges: [['w1', 'w2']] }))
  pools.add(
    { id: 'c', node: { type: 'map_reduce', items: [], workers: 1, map: 'f', reduce: 'f' } },
    task('c/0', part('c')),
  )
  pools.want('custom', true)
  assert.deepEqual(switches(pools), [['b', 'hierarchical', 'custom', 4]])
})

test('a worker who is at a leaf since before gets no other', () => {
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
      .map(({ task: { id } }) => id.slice(0, 1))
      .join(''),
  )
  assert.deepEqual(taken, ['aa', 'bb', 'aa'])
})

test('what was dropped while it waited is not taken, and its worker is free for the next', () => {
  const pools = createFlowPools()
  fill(pools, part('a'))
  pools.remove(new Set(['a/0', 'a/1', 'a/2']))
  assert.deepEqual(
    pools.take(9).map(({ task: { id } }) => id),
    ['a/3'],
  )
  assert.equal(pools.waitingCount(), 0)
})
