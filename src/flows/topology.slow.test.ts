// Topologies through the real executor and database: switched under load, evened out by stealing, measured and learnt.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../test/kit/flows.ts'
import { type Adaptive, type FlowNode, type ForkJoin, type Topology, topologies } from '../kernel/flow.ts'
import { systemActor } from '../kernel/principal.ts'
import { type FlowTopology, readTopology } from './topology.ts'
import { askForTopology, standingOfWish } from './topology-wish.ts'

const flows = await createTestFlows()
const { pool, projectId } = flows
const view = (id: string): Promise<FlowTopology> => readTopology(pool, projectId, id)
const ask = (id: string, topology: Topology): Promise<void> =>
  askForTopology(pool, projectId, id, { topology, actor: systemActor })
async function switchTo(id: string, topology: Topology): Promise<void> {
  await ask(id, topology)
  while ((await standingOfWish(pool, id)) !== 'in force') await new Promise(setImmediate)
}
const tasksOf = (count: number, name: string): Adaptive['tasks'] =>
  Array.from({ length: count }, (_, args) => ({ type: 'task' as const, function: name, args }))
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

const LEAVES = 10_000
const EVERY = 2_500
const workers = range(40).map((index) => `w${index + 1}`)
const edges = workers.map((name, index): [string, string] => [name, workers[(index + 1) % workers.length] ?? ''])

// Each ordered pair of the four stands side by side in exactly one of these.
const ways: Topology[][] = [
  ['hierarchical', 'mesh', 'custom', 'star'],
  ['mesh', 'star', 'hierarchical', 'custom'],
  ['star', 'custom', 'mesh', 'hierarchical'],
  ['custom', 'hierarchical', 'star', 'mesh'],
]

for (const way of ways) {
  test(`10,000 leaves under ${way.join(', ')}: none lost, none twice, each switch under 500 ms`, async (t) => {
    const calls = new Uint8Array(LEAVES)
    const reached = way.map(() => Promise.withResolvers<void>())
    const open = way.map(() => Promise.withResolvers<void>())
    open[0]?.resolve()
    const all = Promise.withResolvers<void>()
    let called = 0
    flows.functions.set('count', async (place: number) => {
      calls[place] = (calls[place] ?? 0) + 1
      const turn = Math.floor(called++ / EVERY)
      reached[turn]?.resolve()
      if (called === LEAVES) all.resolve()
      // Everybody is at work and thousands wait while it is switched.
      await open[turn]?.promise
      return place
    })
    const [topology, ...rest] = way
    const root: FlowNode = {
      ...{ type: 'adaptive', topology, edges, workers, tasks: tasksOf(LEAVES, 'count'), switch: false },
      workload: 'counting',
    }
    const id = await flows.startFlow(root)
    for (const [index, next] of rest.entries()) {
      await reached[index + 1]?.promise
      await switchTo(id, next)
      open[index + 1]?.resolve()
    }
    await all.promise
    const { status, output, progress } = await flows.ended(id)
    assert.deepEqual([status, progress.completed], ['completed', LEAVES])
    assert.deepEqual(output, range(LEAVES))
    assert.ok(calls.every((count) => count === 1))
    const { current, history, by_topology } = await view(id)
    assert.equal(current, way.at(-1))
    assert.deepEqual(
      history.map(({ from, to }) => [from, to]),
      rest.map((next, index) => [way[index], next]),
    )
    for (const { from, to, switch_ms, moved } of history) {
      t.diagnostic(`${from} to ${to}: ${moved} moved in ${switch_ms} ms`)
      assert.ok(switch_ms < 500, `${from} to ${to} took ${switch_ms} ms`)
      assert.ok(moved > 2_000, `${moved} were moved`)
    }
    assert.deepEqual(new Set(Object.keys(by_topology)), new Set(topologies))
    assert.equal(
      Object.values(by_topology).reduce((sum, { tasks }) => sum + tasks, 0),
      LEAVES,
    )
  })
}
