// Flow runs under way, as a client changes them and reads what happened to them.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { checkAlerts } from '../../flows/alerts/check-alerts.ts'
import { createFlowJournal } from '../../flows/execution/journal.ts'
import { type FlowTopology, flowTopologySchema } from '../../flows/history/topology.ts'
import { flowTaskSchema } from '../../flows/history/trace.ts'
import { builtInPatterns } from '../../flows/machine/built-in-patterns.ts'
import type { Alert } from '../../kernel/alert.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import { silentLog } from '../../kernel/log.ts'
import type { ErrorAnswer } from '../http/errors.ts'

let gate = Promise.withResolvers<void>()
/** The gate stays open for the rest of the test: some may come to it later. */
const open = (): void => gate.resolve()
beforeEach(() => {
  gate = Promise.withResolvers()
})
const kit = await createTestApp({
  models: new Map(),
  functions: {
    echo: (value: unknown) => value,
    wait: async () => {
      await gate.promise
      return 'waited'
    },
    odd: (n: number) => {
      if (n % 2 === 0) throw new Error(`${n} is even${' and even'.repeat(n === 0 ? 1_000 : 0)}`)
      return n
    },
    small: (n: number) => {
      if (n > 250) throw new Error(`${n} is large`)
      return n
    },
  },
})
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const { runs, start, until, ended, play, tasksOf, eventsOf } = flowCalls(kit, project.id)
const f = (name: string, more: object = {}) => ({ type: 'task', function: name, ...more })
const hold = f('wait')
const holds = (count: number) => ({ type: 'parallel', branches: Array.from({ length: count }, () => hold) })
const running = (id: string, count: number): Promise<FlowRun> => until(id, ({ progress }) => progress.running === count)
const patch = (id: string, body: object) => kit.call<FlowRun & ErrorAnswer>(`PATCH ${runs}/${id}`, { body })

test('PATCH /flow-runs/:runId changes the time and the workers of a flow run while it runs', async () => {
  const { id } = await start(holds(4), { workers: 1, timeout: 500_000 })
  await running(id, 1)
  const { status, body } = await patch(id, { workers: 3, timeout: 700_000 })
  assert.deepEqual([status, body.workers, body.timeout], [200, 3, 700_000])
  await running(id, 3)
  assert.deepEqual((await patch(id, {})).body.timeout, 700_000)
  assert.equal((await patch(id, { workers: 4 })).body.timeout, 700_000)
  await running(id, 4)
  open()
  assert.equal((await ended(id)).status, 'completed')
  const late = await patch(id, { timeout: 1_000_000 })
  assert.deepEqual([late.status, late.body.error.code], [409, 'CONFLICT'])
  const adjusted = (await eventsOf(id)).filter(({ event }) => event === 'flow.adjusted').map(({ data }) => data)
  assert.deepEqual(
    adjusted.map(({ timeout, workers }) => [timeout, workers]),
    [
      [700_000, 3],
      [700_000, 4],
    ],
  )
  const audit = await kit.call<{ items: { action: string; details: object }[] }>(`GET ${base}/audit`)
  assert.deepEqual(
    audit.body.items.filter(({ action }) => action === 'flow.adjust').map(({ details }) => details),
    [{ workers: 4 }, { timeout: 700_000, workers: 3 }],
  )
})

test('PATCH /flow-runs/:runId with less time than the flow run has taken ends it', async () => {
  const { id } = await start(hold)
  await running(id, 1)
  assert.equal((await patch(id, { timeout: 1 })).status, 200)
  assert.equal((await ended(id)).status, 'timed_out')
  open()
})

test("the alert's action adjust says what to change, and the change helps", async () => {
  const { id } = await start(holds(5), { workers: 2, timeout: 100_000 })
  await running(id, 2)
  await kit.clock.advance(60_000)
  const journal = createFlowJournal({ db: kit.pool, log: silentLog })
  await checkAlerts({ pool: kit.pool, journal, patterns: builtInPatterns, usualWorkers: 50 })
  const [alert] = (await kit.call<{ items: Alert[] }>(`GET ${base}/alerts?flow_run_id=${id}`)).body.items
  assert.ok(alert?.adjust)
  assert.deepEqual(alert.actions, ['cancel', 'add_workers', 'adjust'])
  assert.equal(alert.adjust.workers, 4)
  assert.ok((alert.adjust.timeout ?? 0) >= 180_000)
  const { status, body } = await patch(id, alert.adjust)
  assert.deepEqual([status, body.workers, body.timeout], [200, 4, alert.adjust.timeout])
  await running(id, 4)
  open()
  assert.equal((await ended(id)).status, 'completed')
})

test('skipped items of a pipeline are listed with their error', async () => {
  const stages = [f('odd'), f('small', { id: 'sized' })]
  const items = Array.from({ length: 300 }, (_, index) => index)
  const pipeline = { type: 'pipeline', id: 'line', source: items, stages, on_error: 'skip' }
  const run = await play({ type: 'sequential', steps: [pipeline, f('echo', { id: 'after' })] })
  assert.deepEqual([run.status, run.progress.items?.skipped], ['completed', 150 + 25])
  const [line, after] = await tasksOf(run.id)
  assert.ok(line?.skipped && after)
  flowTaskSchema.parse(line)
  assert.equal(line.skipped.length, 100)
  assert.deepEqual(line.skipped[1], { index: 2, stage: 0, error: '2 is even' })
  assert.equal(line.skipped[0]?.error.length, 1_000)
  assert.deepEqual(
    line.skipped.map(({ index }) => index),
    line.skipped.map(({ index }) => index).toSorted((a, b) => a - b),
  )
  assert.equal('skipped' in after, false)
  const few = await play({ ...pipeline, source: [1, 2, 251, 253] })
  const [only] = await tasksOf(few.id)
  assert.deepEqual(only?.skipped, [
    { index: 1, stage: 0, error: '2 is even' },
    { index: 2, stage: 'sized', error: '251 is large' },
    { index: 3, stage: 'sized', error: '253 is large' },
  ])
  const none = await play({ ...pipeline, source: [1] })
  assert.deepEqual((await tasksOf(none.id))[0]?.skipped, [])
})

test('a topology switch records what it considered; one that was asked for considered nothing', async () => {
  const tasks = Array.from({ length: 40 }, () => hold)
  const { id } = await start({
    type: 'adaptive',
    topology: 'hierarchical',
    workers: 2,
    tasks,
    overload: { queue_length: 5 },
  })
  const topology = async (): Promise<FlowTopology> => (await kit.call<FlowTopology>(`GET ${runs}/${id}/topology`)).body
  while ((await topology()).history.length === 0) await new Promise(setImmediate)
  await kit.call(`POST ${runs}/${id}/topology`, { body: { topology: 'star' } })
  const told = await topology()
  flowTopologySchema.parse(told)
  const [switched, asked] = told.history
  assert.deepEqual([switched?.from, switched?.to], ['hierarchical', 'mesh'])
  assert.deepEqual(switched?.considered, [
    { topology: 'mesh', estimate: 1 },
    { topology: 'star', estimate: 1 },
  ])
  assert.deepEqual([asked?.to, asked?.considered], ['star', null])
  await kit.call(`POST ${runs}/${id}/cancel`)
  open()
  await ended(id)
})

test('edges are accepted with every topology, used when it is custom, and may be empty', async () => {
  const tasks = Array.from({ length: 4 }, (_, args) => f('echo', { args }))
  for (const topology of ['hierarchical', 'mesh', 'star', 'custom']) {
    for (const edges of [[], [['w1', 'w2']]]) {
      const run = await play({ type: 'adaptive', topology, edges, workers: 2, tasks })
      assert.deepEqual([run.status, run.output], ['completed', [0, 1, 2, 3]], `${topology} ${edges.length}`)
    }
  }
  const held = await start({
    type: 'adaptive',
    topology: 'mesh',
    edges: [['w1', 'w2']],
    workers: 2,
    tasks: [hold, hold],
  })
  await running(held.id, 2)
  const { status, body } = await kit.call<FlowTopology>(`POST ${runs}/${held.id}/topology`, {
    body: { topology: 'custom' },
  })
  assert.deepEqual([status, body.current], [200, 'custom'])
  open()
  await ended(held.id)
})
