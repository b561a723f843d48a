import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Topology } from '../../kernel/flow.ts'
import type { TopologyMeasures } from './measures.ts'
import { findOverload, type PoolLoad } from './overload.ts'
import { createWorkPool } from './work-pool.ts'

/** Workers that have this many tasks waiting. Workers without waiting tasks have none that they may take. */
const loadOf = (topology: Topology, waiting: readonly number[], more: Partial<PoolLoad> = {}): PoolLoad => ({
  topology,
  stealing: true,
  hasEdges: topology === 'custom',
  queueLength: 10,
  maySwitch: true,
  hub: 0,
  workers: waiting.map((length) => ({ waiting: length, perSecond: 5, isIdle: length === 0 })),
  measured: {},
  ...more,
})

const measure = (tasks: number, throughput: number): TopologyMeasures => ({ tasks, throughput, wait: 0, duration: 0 })

const cases: { name: string; load: PoolLoad; to: Topology | null | 'no overload' }[] = [
  { name: 'half of the workers', load: loadOf('hierarchical', [11, 11, 10, 0]), to: 'mesh' },
  { name: 'less than half', load: loadOf('hierarchical', [90, 10, 10]), to: 'no overload' },
  { name: 'as many as the limit', load: loadOf('hierarchical', [10, 10]), to: 'no overload' },
  { name: 'another limit', load: loadOf('hierarchical', [3, 3], { queueLength: 2 }), to: 'mesh' },
  { name: 'no workers', load: loadOf('hierarchical', [], { hub: 90 }), to: 'no overload' },
  { name: 'a fixed topology', load: loadOf('hierarchical', [11, 11], { maySwitch: false }), to: null },
  {
    name: 'hierarchical, though mesh was measured as slower',
    load: loadOf('hierarchical', [11, 11], { measured: { hierarchical: measure(99, 9), mesh: measure(99, 1) } }),
    to: 'mesh',
  },
  { name: 'a hub with as many tasks as allowed', load: loadOf('star', [0, 0], { hub: 20 }), to: 'no overload' },
  { name: 'a hub with more tasks than allowed', load: loadOf('star', [0, 0], { hub: 21 }), to: null },
  { name: 'a mesh stays while no worker is idle', load: loadOf('mesh', [11, 11]), to: null },
  {
    name: 'a mesh switches to the topology that did more before',
    load: loadOf('mesh', [11, 11], { measured: { mesh: measure(8, 4), star: measure(8, 5) } }),
    to: 'star',
  },
  {
    name: 'a mesh stays if the difference may be chance',
    load: loadOf('mesh', [11, 11], { measured: { mesh: measure(8, 4), star: measure(8, 4.7) } }),
    to: null,
  },
  {
    name: 'a mesh stays if too little was measured',
    load: loadOf('mesh', [11, 11], { measured: { mesh: measure(8, 4), star: measure(7, 9) } }),
    to: null,
  },
  {
    name: 'a mesh without stealing, with idle workers',
    load: loadOf('mesh', [11, 0], { stealing: false }),
    to: 'star',
  },
  { name: 'edges that give all workers work', load: loadOf('custom', [11, 11]), to: null },
  { name: 'edges that leave half of the workers without work', load: loadOf('custom', [11, 11, 0, 0]), to: 'mesh' },
  {
    name: 'edges, with mesh measured as slower and star as good as the edges',
    load: loadOf('custom', [11, 11, 0, 0], { measured: { custom: measure(16, 9), mesh: measure(16, 4) } }),
    to: 'star',
  },
]

for (const { name, load, to } of cases) {
  test(`overload: ${name}: ${to ?? 'stays'}`, () => {
    const overload = findOverload(load)
    assert.equal(overload ? overload.to : 'no overload', to)
  })
}

test('an overload tells the excess and the topologies that were considered', () => {
  assert.deepEqual(findOverload(loadOf('hierarchical', [11, 12, 0, 0])), {
    reason: '2 of 4 workers have more than 10 waiting',
    to: 'mesh',
    considered: [
      { topology: 'mesh', estimate: 2 },
      { topology: 'star', estimate: 2 },
    ],
  })
  assert.equal(
    findOverload(loadOf('custom', [11, 12, 0, 0]))?.reason,
    '2 of 4 workers have more than 10 waiting; mesh is expected to get 2.0 times as much done',
  )
  assert.equal(
    findOverload(loadOf('star', [0, 0], { hub: 21 }))?.reason,
    '21 wait at the hub of 2 workers; no other topology is expected to do better than star',
  )
})

const tasks = Array.from({ length: 24 }, (_, index) => ({ id: String(index) }))

test('the check of a pool looks at its waiting tasks and changes nothing', () => {
  const pool = createWorkPool({ workers: ['a', 'b'], topology: 'hierarchical', maySwitch: true, now: () => 0 })
  pool.add(tasks.slice(0, 20))
  assert.equal(pool.check(), null)
  pool.add(tasks)
  assert.equal(pool.check()?.to, 'mesh')
  assert.equal(pool.switchTo('hierarchical'), null)
  pool.switchTo('mesh')
  assert.equal(pool.check()?.to, null)
  pool.switchTo('star')
  assert.match(pool.check()?.reason ?? '', /^24 wait at the hub/)
})

for (const { name, edges, to } of [
  { name: 'has no task and may take from no other counts as idle', edges: [['a', 'b']], to: 'mesh' },
  { name: 'may take from a worker with tasks does not count as idle', edges: [['b', 'a']], to: null },
] as const) {
  test(`in a pool with edges a worker that ${name}`, () => {
    const pool = createWorkPool({ workers: ['a', 'b'], topology: 'custom', edges, maySwitch: true, now: () => 0 })
    pool.add(tasks)
    assert.equal(pool.check()?.to, null)
    for (let round = 0; round < 12; round++) pool.done('a', pool.next('a')?.task.id ?? '', 10, true)
    assert.equal(pool.check()?.to, to)
  })
}

test('an edge from a worker without tasks gives no work', () => {
  const edges = [['c', 'a']] as const
  const workers = ['a', 'b', 'c', 'd']
  const pool = createWorkPool({ workers, topology: 'custom', edges, maySwitch: true, now: () => 0 })
  pool.add(Array.from({ length: 48 }, (_, index) => ({ id: String(index) })))
  for (const worker of ['c', 'a']) {
    for (let round = 0; round < 12; round++) pool.done(worker, pool.next(worker)?.task.id ?? '', 10, true)
  }
  assert.deepEqual(pool.check()?.considered[0], { topology: 'mesh', estimate: 2 })
})
