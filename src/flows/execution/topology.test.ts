// Topologies of runs that change owners: no process waits for agents that are leaves, and processes end.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import type { Topology } from '../../kernel/flow.ts'
import { systemActor } from '../../kernel/principal.ts'
import { readTopology } from '../history/topology.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import type { Adaptive } from '../machine/patterns/adaptive.ts'
import { askForTopology, statusOfWish } from './topology-wish.ts'

const flows = await createTestFlows()
const { pool, projectId } = flows
const until = async (holds: () => Promise<boolean>): Promise<void> => {
  while (!(await holds())) await new Promise(setImmediate)
}
const ask = (id: string, topology: Topology): Promise<void> =>
  askForTopology(pool, projectId, id, { topology, actor: systemActor, patterns: builtInPatterns })
const adaptive = (fields: Partial<Adaptive> & Pick<Adaptive, 'tasks'>): Adaptive => ({
  type: 'adaptive',
  topology: 'hierarchical',
  workers: 2,
  switch: false,
  ...fields,
})
const many = (count: number, leaf: Adaptive['tasks'][number]): Adaptive['tasks'] =>
  Array.from({ length: count }, () => leaf)

/** The agents at work. Each works until its function here is called. */
const atWork: (() => void)[] = []
flows.models.set(
  'script',
  createScriptedModel(async () => {
    await new Promise<void>((resolve) => atWork.push(resolve))
    return { text: 'Done.' }
  }),
)
await flows.createAgent({ name: 'leaf' })
const agent = { type: 'task' as const, agent: 'leaf', input: 'Do it.' }

test('a worker has one agent at a time, also after the flow changed its owner', async () => {
  const id = await flows.startFlow(adaptive({ tasks: many(4, agent) }))
  for (const completed of [0, 1, 2]) {
    await until(async () => {
      const { progress, owner } = await flows.read(id)
      return progress.completed === completed && progress.running > 0 && owner === null
    })
    assert.equal((await flows.read(id)).progress.running, 2)
    await until(async () => atWork.length === 2)
    atWork.shift()?.()
  }
  await until(async () => atWork.length === 1)
  atWork.shift()?.()
  assert.equal((await flows.ended(id)).status, 'completed')
})

test('a flow that waits for its agents is woken to switch, and goes on waiting', async () => {
  const id = await flows.startFlow(adaptive({ tasks: many(4, agent) }))
  await until(async () => atWork.length === 2 && (await flows.read(id)).owner === null)
  await ask(id, 'mesh')
  await until(async () => (await statusOfWish(pool, id)) === 'in force')
  const { current, history } = await readTopology(pool, projectId, id, builtInPatterns)
  assert.deepEqual(
    [current, history.map(({ from, to, moved }) => [from, to, moved])],
    ['mesh', [['hierarchical', 'mesh', 2]]],
  )
  for (let left = 4; left > 0; left--) {
    await until(async () => atWork.length > 0)
    atWork.shift()?.()
  }
  assert.equal((await flows.ended(id)).status, 'completed')
  assert.equal((await readTopology(pool, projectId, id, builtInPatterns)).history.length, 1)
})

test('a wanted topology holds for parts that begin later, and is journalled before their leaves begin', async () => {
  const hold = Promise.withResolvers<void>()
  flows.functions.set('hold', () => hold.promise)
  flows.functions.set('nothing', () => null)
  const nothing = { type: 'task' as const, function: 'nothing' }
  const steps: BuiltInNode[] = [
    { type: 'task', function: 'hold' },
    adaptive({ id: 'first', tasks: many(4, nothing) }),
    adaptive({ id: 'second', topology: 'star', tasks: many(4, nothing) }),
    adaptive({ id: 'third', tasks: many(4, nothing) }),
  ]
  const id = await flows.startFlow({ type: 'sequential', steps })
  await until(async () => (await flows.read(id)).progress.running === 1)
  await ask(id, 'star')
  await until(async () => (await statusOfWish(pool, id)) === 'in force')
  assert.equal((await readTopology(pool, projectId, id, builtInPatterns)).current, 'star')
  hold.resolve()
  assert.equal((await flows.ended(id)).status, 'completed')
  const { history, handovers } = await readTopology(pool, projectId, id, builtInPatterns)
  assert.deepEqual(
    history.map(({ pool: part, from, to }) => [part, from, to]),
    ['first', 'third'].map((part) => [part, 'hierarchical', 'star']),
  )
  assert.deepEqual(handovers, [])
  const kinds = await flows.flowKinds(id)
  assert.deepEqual(kinds.slice(3, 5), ['topology.switched', 'task.started'])
  assert.equal(kinds.filter((kind) => kind === 'topology.measured').length, 1)
  assert.deepEqual(kinds.slice(-2), ['topology.measured', 'flow.completed'])
})

test('a topology that is asked for twice is switched once; after another topology it is switched again', async () => {
  const hold = Promise.withResolvers<void>()
  flows.functions.set('hold', () => hold.promise)
  const id = await flows.startFlow(adaptive({ tasks: many(4, { type: 'task', function: 'hold' }) }))
  await until(async () => (await flows.read(id)).progress.running === 2)
  for (const topology of ['mesh', 'mesh', 'star', 'mesh'] as const) {
    await ask(id, topology)
    await until(async () => (await statusOfWish(pool, id)) === 'in force')
  }
  const { history } = await readTopology(pool, projectId, id, builtInPatterns)
  assert.deepEqual(
    history.map(({ to }) => to),
    ['mesh', 'star', 'mesh'],
  )
  hold.resolve()
  await flows.ended(id)
  await assert.rejects(ask(id, 'star'), { code: 'CONFLICT' })
})
