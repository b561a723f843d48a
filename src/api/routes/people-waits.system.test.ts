// Flows whose leaves wait for people: alerts, metrics and the ETA leave these waits out.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { checkAlerts } from '../../flows/alerts/check-alerts.ts'
import { createFlowJournal } from '../../flows/execution/journal.ts'
import type { FlowMetrics } from '../../flows/history/metrics.ts'
import { builtInPatterns } from '../../flows/machine/built-in-patterns.ts'
import type { Alert } from '../../kernel/alert.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import { silentLog } from '../../kernel/log.ts'
import type { Task } from '../../kernel/task.ts'

const model = createScriptedModel((request) => {
  const said = JSON.stringify(request.prompt)
  if (request.prompt.length > 2) return { text: 'Done.' }
  if (said.includes('You delegate.'))
    return { calls: [{ name: 'spawn_agent', args: { agent: 'asking', input: 'Go.' } }] }
  return { calls: [{ name: 'ask_human', args: { question: 'May I?' } }] }
})
let gate = Promise.withResolvers<void>()
let mustFail = true
const fail = (): string => {
  if (mustFail) throw new Error('not yet')
  return 'passed'
}
const kit = await createTestApp({
  models: new Map([['script', model]]),
  functions: { echo: () => 'echo', wait: () => gate.promise.then(() => 'waited'), fail },
})
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const { runs, start: startFlow, read, until, ended, eventsOf } = flowCalls(kit, project.id)
/** People may take days. */
const timeout = 1_000_000_000
const start = (root: object): Promise<FlowRun> => startFlow(root, { timeout })
await kit.createAgent(project.id, { name: 'asking', tools: ['ask_human'] })
await kit.createAgent(project.id, { name: 'delegating', prompt: 'You delegate.', tools: ['spawn_agent'] })
const ask = { type: 'task', id: 'ask', agent: 'asking', input: 'Go.' }
const report = { type: 'task', id: 'report', function: 'echo' }
const wait = { type: 'task', id: 'wait', function: 'wait' }
const sequence = (...steps: object[]) => ({ type: 'sequential', steps })

const journal = createFlowJournal({ db: kit.pool, log: silentLog })
const check = (): Promise<number> => checkAlerts({ pool: kit.pool, journal, patterns: builtInPatterns })
const alertsOf = async (id: string): Promise<Alert[]> =>
  (await kit.call<{ items: Alert[] }>(`GET ${base}/alerts?flow_run_id=${id}`)).body.items
const metricsOf = async (id: string): Promise<FlowMetrics> =>
  (await kit.call<FlowMetrics>(`GET ${runs}/${id}/metrics`)).body

/** Waits until a question of this flow run is open, and answers the question's task. */
async function asked(flowRunId: string, nth = 1): Promise<Task> {
  for (;;) {
    const { rowCount } = await kit.pool.query(
      `select from flow_events where run_id = $1 and kind = 'task.waiting' offset $2 - 1`,
      [flowRunId, nth],
    )
    const { body } = await kit.call<{ items: Task[] }>(`GET ${base}/tasks?kind=escalation&status=pending`)
    const [task] = body.items
    if (rowCount && task) return task
    await new Promise(setImmediate)
  }
}
async function answer(task: Task): Promise<void> {
  const body = { status: 'completed', result: 'You may.' }
  assert.equal((await kit.call(`PATCH ${base}/tasks/${task.id}`, { body })).status, 200)
}

for (const [name, leaf] of [
  ['its own run', ask],
  ['a sub-run of it', { ...ask, agent: 'delegating' }],
] as const) {
  test(`a leaf that waits for a person is no alert and no bottleneck: ${name}`, async () => {
    const { id } = await start(sequence(leaf, report))
    const question = await asked(id)
    await kit.clock.advance(3_600_000)
    assert.equal(await check(), 0)
    assert.deepEqual(await alertsOf(id), [])
    const waiting = await metricsOf(id)
    assert.ok(!waiting.bottlenecks.some(({ duration }) => duration > 60_000), JSON.stringify(waiting.bottlenecks))
    assert.ok(!waiting.recommendations.some((said) => said.includes('split')), waiting.recommendations.join('\n'))
    assert.match(waiting.recommendations.join('\n'), /ask waited for a person/)
    assert.equal((await read(id)).eta, null, 'nobody knows when a person answers')

    await answer(question)
    const run = await ended(id)
    assert.equal(run.status, 'completed', run.error ?? '')
    assert.ok((run.duration ?? 0) > 3_600_000)
    const { bottlenecks, recommendations, total_duration } = await metricsOf(id)
    assert.equal(total_duration, run.duration)
    assert.ok(!bottlenecks.some(({ duration }) => duration > 60_000), JSON.stringify(bottlenecks))
    assert.ok(!recommendations.some((said) => said.includes('split')), recommendations.join('\n'))
    const kinds = (await eventsOf(id)).flatMap(({ event, data }) => (data.task_id === 'ask' ? [event] : []))
    assert.deepEqual(kinds, ['task.started', 'task.waiting', 'task.continued', 'task.completed'])
  })
}

test('a leaf that hangs beside one that waits for a person is an alert, about itself', async () => {
  gate = Promise.withResolvers()
  const { id } = await start({ type: 'parallel', branches: [ask, wait] })
  const question = await asked(id)
  await kit.clock.advance(3_600_000)
  assert.equal(await check(), 1)
  const [alert] = await alertsOf(id)
  assert.match(alert?.suspected_cause ?? '', /wait has been under way for 36\d\d s\.$/)
  assert.doesNotMatch(alert?.suspected_cause ?? '', /ask/)
  gate.resolve()
  await answer(question)
  await ended(id)
})

test('the clock of an alert stands still while a person is waited for, and goes on with the answer', async () => {
  gate = Promise.withResolvers()
  // A model call of 5 s and a function of 1 s are expected; so much more here that it does not depend on the machine.
  const { id } = await start(sequence(ask, wait))
  await kit.pool.query('update flow_runs set expected = 100000 where id = $1', [id])
  const question = await asked(id)
  await kit.clock.advance(86_400_000)
  assert.equal(await check(), 0)
  await answer(question)
  await until(id, ({ progress }) => progress.completed === 1 && progress.running === 1)
  await kit.clock.advance(190_000)
  assert.equal(await check(), 0, 'a day of waiting does not count')
  await kit.clock.advance(15_000)
  assert.equal(await check(), 1)
  assert.match((await alertsOf(id))[0]?.suspected_cause ?? '', /^20\d s so far, where 100 s were expected\. wait /)
  gate.resolve()
  await ended(id)
})

test('a wait for a person does not count for the timeout of the flow run, and the rest of its time does', async () => {
  gate = Promise.withResolvers()
  const { id } = await startFlow(sequence(ask, wait), { timeout: 600_000 })
  const question = await asked(id)
  for (let hour = 0; hour < 3; hour++) await kit.clock.advance(3_600_000)
  assert.equal((await read(id)).status, 'running')
  await answer(question)
  await until(id, ({ progress }) => progress.completed === 1 && progress.running === 1)
  const { rows } = await kit.pool.query('select waited from flow_runs where id = $1', [id])
  assert.ok(rows[0].waited >= 3 * 3_600_000)
  gate.resolve()
  assert.equal((await ended(id)).status, 'completed')
})

test('the time of the off switch does not count for the timeout of a flow run', async () => {
  const trying = { type: 'task', function: 'fail', retry: { max_retries: 100, backoff: 100 } }
  const { id } = await startFlow({ type: 'parallel', branches: [report, trying] }, { timeout: 600_000 })
  const isParked = async (): Promise<boolean> =>
    (await kit.pool.query('select from flow_runs where id = $1 and halted_since is not null', [id])).rowCount === 1
  assert.equal((await kit.call(`POST ${base}/halt`)).status, 200)
  while (!(await isParked())) await new Promise(setImmediate)
  await kit.clock.advance(3_600_000)
  mustFail = false
  assert.equal((await kit.call(`POST ${base}/unhalt`)).status, 200)
  assert.equal((await ended(id)).status, 'completed')
})

test('a flow run that is cancelled while it waits for a person has no events after its end', async () => {
  const { id } = await start(ask)
  await asked(id)
  await kit.call(`PATCH ${base}/settings`, { body: { cancel_drain: 0 } })
  await kit.call(`POST ${runs}/${id}/cancel`)
  assert.equal((await ended(id)).status, 'cancelled')
  const last = async () => {
    const { rows } = await kit.pool.query(
      `select r.people_waits, r.last_seq = e.seq as is_whole, e.kind from flow_runs r, flow_events e
       where r.id = $1 and e.run_id = $1 order by e.seq desc limit 1`,
      [id],
    )
    return rows[0]
  }
  while ((await last()).people_waits > 0) await new Promise(setImmediate)
  assert.deepEqual(await last(), { people_waits: 0, is_whole: true, kind: 'flow.cancelled' })
  // A run that the flow has left behind may begin to wait when the flow has ended.
  await kit.pool.query(
    `update agent_runs set status = 'paused', pause_reason = 'human', completed_at = null where flow_run_id = $1`,
    [id],
  )
  assert.deepEqual(await last(), { people_waits: 1, is_whole: true, kind: 'flow.cancelled' })
  await kit.pool.query(
    `update agent_runs set status = 'cancelled', completed_at = muster.now() where flow_run_id = $1`,
    [id],
  )
  assert.deepEqual(await last(), { people_waits: 0, is_whole: true, kind: 'flow.cancelled' })
})

test("an alert's expectation is the one the ETA uses", async () => {
  const { body: flow } = await kit.call<{ id: string }>(`POST ${base}/flows`, {
    body: { name: 'measured', root: sequence(report, wait) },
  })
  const begin = async (): Promise<FlowRun> => {
    const { body } = await kit.call<FlowRun>(`POST ${runs}`, { body: { flow_id: flow.id, timeout } })
    return until(body.id, ({ progress }) => progress.completed === 1 && progress.running === 1)
  }
  const foretold = (run: FlowRun): number => (Date.parse(run.eta ?? '') - Date.parse(run.started_at ?? '')) / 1_000
  // Three runs of 80 s, and one of which an hour was a wait for a person.
  const [first] = [await start(ask)]
  await asked(first.id).then(async (question) => {
    await kit.clock.advance(3_600_000)
    await answer(question)
  })
  await ended(first.id)
  await kit.pool.query(`update flow_runs set flow_id = $2, duration = 80000 + waited where id = $1`, [
    first.id,
    flow.id,
  ])
  for (let n = 0; n < 2; n++) {
    gate = Promise.withResolvers()
    const run = await begin()
    await kit.clock.advance(80_000)
    gate.resolve()
    await ended(run.id)
  }
  gate = Promise.withResolvers()
  const run = await begin()
  assert.ok(Math.abs(foretold(run) - 80) < 5, `${foretold(run)} s`)
  const { body: listed } = await kit.call<{ items: FlowRun[] }>(`GET ${runs}?flow_id=${flow.id}&status=running`)
  assert.ok(Math.abs(foretold(listed.items[0] ?? run) - 80) < 5, 'the list says the same')
  await kit.clock.advance(150_000)
  assert.equal(await check(), 0)
  await kit.clock.advance(20_000)
  assert.equal(await check(), 1)
  assert.match((await alertsOf(run.id))[0]?.suspected_cause ?? '', /where (79|8\d) s were expected/)
  const late = await read(run.id)
  // Half of the work is left, and half of 80 s with it.
  assert.ok(Math.abs(foretold(late) - 170 - 40) < 5, `${foretold(late)} s`)
  gate.resolve()
  await ended(run.id)

  // Without measured runs both use the estimate from the tree.
  gate = Promise.withResolvers()
  const { id } = await start(wait)
  await kit.pool.query('update flow_runs set expected = 50000 where id = $1', [id])
  const estimated = await until(id, ({ progress }) => progress.running === 1)
  assert.ok(Math.abs(foretold(estimated) - 50) < 2, `${foretold(estimated)} s`)
  await kit.clock.advance(101_000)
  assert.equal(await check(), 1)
  assert.match((await alertsOf(id))[0]?.suspected_cause ?? '', /where 50 s were expected/)
  gate.resolve()
  await ended(id)
})
