// Agents that are flows, inside one another and at their limits: ends, waits, tokens and runs count at every level.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { createScriptedModel, type ScriptedAnswer } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { createAsk } from '../../bin/ask-model.ts'
import { checkAlerts } from '../../flows/alerts/check-alerts.ts'
import { createBuiltInFunctions } from '../../flows/definition/built-in-functions.ts'
import { createFlowJournal } from '../../flows/execution/journal.ts'
import type { FlowMetrics } from '../../flows/history/metrics.ts'
import { builtInPatterns } from '../../flows/machine/built-in-patterns.ts'
import { createOutageWatch } from '../../journal/outage-watch.ts'
import { createProjectCalls } from '../../journal/project-calls.ts'
import type { Agent } from '../../kernel/agent.ts'
import type { Alert } from '../../kernel/alert.ts'
import type { AppFunction } from '../../kernel/app.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import { silentLog } from '../../kernel/log.ts'
import type { Run } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

type List<Item> = { items: Item[] }

let gate = Promise.withResolvers<void>()
/** Ignores its signal, so that only the gate ends it. */
const wait: AppFunction = () => gate.promise.then(() => 'waited')
const USAGE = { inputTokens: 60, outputTokens: 40 }
let answer: (prompt: string) => ScriptedAnswer | Promise<ScriptedAnswer> = () => ({ text: 'Done.', usage: USAGE })
const model = createScriptedModel((request) => answer(JSON.stringify(request.prompt)))
const builtIn = createBuiltInFunctions({
  ask: (...question) =>
    createAsk({ pool: kit.pool, resolveModel: async () => model, isHalted: () => false, calls, outages })(...question),
})
const kit = await createTestApp({
  models: new Map([['script', model]]),
  functions: { wait, ...Object.fromEntries(builtIn) },
})
const { rows: workers } = await kit.pool.query<{ id: string }>('select id from workers')
const ownerId = (): string => workers[0]?.id ?? ''
const calls = createProjectCalls({ pool: kit.pool, ownerId })
const outages = createOutageWatch({ pool: kit.pool, ownerId, onReady: () => {}, log: silentLog })
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const { start: startFlow, ended } = flowCalls(kit, project.id)
await kit.createAgent(project.id, { name: 'worker' })
await kit.createAgent(project.id, { name: 'asking', tools: ['ask_human'] })
const work = { type: 'task', id: 'work', agent: 'worker', input: 'Work.' }
const held = { type: 'task', id: 'held', function: 'wait' }

let made = 0
async function createFlowAgent(root: object, more: Partial<Agent> = {}): Promise<Agent> {
  const name = `flow ${++made}`
  const flow = await kit.call(`POST ${base}/flows`, { body: { name, root } })
  assert.equal(flow.status, 201, flow.text)
  return kit.createAgent(project.id, { name: `agent ${made}`, flow_type: 'flow', flow: name, model: null, ...more })
}
const leafOf = (agent: Agent) => ({ type: 'task', id: 'in', agent: agent.name, input: '{{input}}' })
async function begin(agent: Agent): Promise<Run> {
  const headers = { prefer: 'respond-async' }
  return (await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { body: { input: 'x' }, headers })).body
}
async function trigger(agent: Agent): Promise<Run> {
  const given = await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { body: { input: 'x' } })
  assert.equal(given.status, 200, given.text)
  return given.body
}
const readRun = async (id: string): Promise<Run> => (await kit.call<Run>(`GET ${base}/runs/${id}`)).body
const readFlow = async (id: string | null): Promise<FlowRun> =>
  (await kit.call<FlowRun>(`GET ${base}/flow-runs/${id}`)).body
const leavesOf = async (flowRunId: string | null): Promise<Run[]> =>
  (await kit.call<List<Run>>(`GET ${base}/runs?flow_run_id=${flowRunId}`)).body.items
const statusIs = (id: string, status: string) => async (): Promise<boolean> => (await readRun(id)).status === status
const flowIs = (id: string | null, status: string) => async (): Promise<boolean> =>
  (await readFlow(id)).status === status

/** The flow runs below a run whose flow is a leaf that is a flow again, once the innermost leaf is under way. */
async function underWay(run: Run): Promise<{ outer: string; inner: string; innerRun: Run }> {
  for (;;) {
    const { flow_run_id: outer } = await readRun(run.id)
    const [innerRun] = outer ? await leavesOf(outer) : []
    const inner = innerRun?.flow_run_id
    if (outer && innerRun && inner && (await readFlow(inner)).progress.running > 0) return { outer, inner, innerRun }
    await new Promise(setImmediate)
  }
}

test('an agent that is deleted takes its flow run down, with the flow runs below it', async () => {
  gate = Promise.withResolvers()
  await kit.call(`PATCH ${base}/settings`, { body: { cancel_drain: 0 } })
  const innerAgent = await createFlowAgent(held)
  const agent = await createFlowAgent(leafOf(innerAgent))
  const run = await begin(agent)
  const { outer, inner, innerRun } = await underWay(run)
  assert.equal((await kit.call(`DELETE ${base}/agents/${agent.id}`)).status, 204)
  await until(statusIs(run.id, 'failed'), 'the run ends')
  assert.equal((await readRun(run.id)).error_code, 'AGENT_DELETED')
  await until(flowIs(outer, 'cancelled'), 'its flow run ends')
  await until(flowIs(inner, 'cancelled'), 'the flow run below ends')
  await until(statusIs(innerRun.id, 'cancelled'), 'the leaf ends')
  gate.resolve()
})

test('the run of a flow under way may end when its agent is disabled, as other runs may', async () => {
  gate = Promise.withResolvers()
  const agent = await createFlowAgent(held)
  const run = await begin(agent)
  await until(async () => (await readRun(run.id)).flow_run_id !== null, 'the flow run is started')
  await kit.call(`PATCH ${base}/agents/${agent.id}`, { body: { enabled: false } })
  gate.resolve()
  await until(statusIs(run.id, 'completed'), 'the run completes')
})

test('a run that waits for its flow run is paused while the project is halted, and goes on afterwards', async () => {
  gate = Promise.withResolvers()
  const innerAgent = await createFlowAgent(held)
  const run = await begin(await createFlowAgent(leafOf(innerAgent)))
  const { innerRun } = await underWay(run)
  assert.equal((await kit.call(`POST ${base}/halt`)).status, 200)
  for (const id of [run.id, innerRun.id]) {
    await until(statusIs(id, 'paused'), 'the run pauses')
    assert.equal((await readRun(id)).pause_reason, 'halted')
  }
  assert.equal((await kit.call(`POST ${base}/unhalt`)).status, 200)
  for (const id of [run.id, innerRun.id]) await until(statusIs(id, 'running'), 'the run goes on')
  gate.resolve()
  await until(statusIs(run.id, 'completed'), 'the run completes')
  assert.equal((await readRun(run.id)).summary, 'waited')
})

test('the flow runs below a flow run have a limited number of runs together, and the leaf says so', async () => {
  const innerAgent = await createFlowAgent({ type: 'parallel', branches: [work, { ...work, id: 'more' }] })
  const branches = [held, { type: 'sequential', steps: [{ ...held, id: 'first' }, leafOf(innerAgent)] }]
  gate = Promise.withResolvers()
  const { id } = await startFlow({ type: 'parallel', branches })
  // 9,999 runs below it have begun before.
  await kit.pool.query('update flow_runs set runs_below = 9999 where id = $1', [id])
  gate.resolve()
  await ended(id)
  const [innerRun] = await leavesOf(id)
  const inner = await readFlow(innerRun?.flow_run_id ?? null)
  assert.equal(inner.status, 'partial')
  assert.match(inner.error ?? '', new RegExp(`The flow run ${id} has reached its limit of 10000 runs of agents`))
  assert.equal((await leavesOf(inner.id)).length, 1)
  const { rows } = await kit.pool.query('select runs_below from flow_runs where id = any($1) order by 1', [
    [id, inner.id],
  ])
  assert.deepEqual(rows, [{ runs_below: 0 }, { runs_below: 10_000 }])
})

test('usage that arrives after the end of a flow run counts at every level', async () => {
  const asked = Promise.withResolvers<void>()
  const late = Promise.withResolvers<void>()
  answer = async () => {
    asked.resolve()
    await late.promise
    return { text: 'Late.', usage: USAGE }
  }
  const innerAgent = await createFlowAgent(work)
  const run = await begin(await createFlowAgent(leafOf(innerAgent)))
  const { outer, inner, innerRun } = await underWay(run)
  await asked.promise
  const [leaf] = await leavesOf(inner)
  // The process that works on the leaf hears nothing of the cancel, as if it were cut off.
  await kit.pool.query(`update agent_runs set status = 'cancelled', completed_at = muster.now() where id = any($1)`, [
    [run.id, innerRun.id],
  ])
  await until(flowIs(outer, 'cancelled'), 'the flow run ends')
  await until(flowIs(inner, 'cancelled'), 'the flow run below ends')
  late.resolve()
  await until(async () => (await readRun(leaf?.id ?? '')).completed_at !== null, 'the leaf ends')
  const usages = [
    (await readFlow(inner)).usage,
    (await readRun(innerRun.id)).usage,
    (await readFlow(outer)).usage,
    (await readRun(run.id)).usage,
  ]
  const { total_tokens: total } = (await readRun(leaf?.id ?? '')).usage
  assert.ok(total > 0)
  assert.deepEqual(
    usages.map(({ total_tokens }) => total_tokens),
    [total, total, total, total],
  )
  answer = () => ({ text: 'Done.', usage: USAGE })
})

const journal = createFlowJournal({ db: kit.pool, log: silentLog })
const check = (): Promise<number> => checkAlerts({ pool: kit.pool, journal, patterns: builtInPatterns })
const alertsOf = async (id: string): Promise<Alert[]> =>
  (await kit.call<List<Alert>>(`GET ${base}/alerts?flow_run_id=${id}`)).body.items

test('a leaf that waits for a person is no alert and no bottleneck of the flow runs above it', async () => {
  answer = (prompt) =>
    prompt.includes('tool-result')
      ? { text: 'Done.' }
      : { calls: [{ name: 'ask_human', args: { question: 'May I?' } }] }
  const innermost = await createFlowAgent({ type: 'task', id: 'ask', agent: 'asking', input: 'Go.' })
  const inner = await createFlowAgent(leafOf(innermost))
  await kit.call(`PATCH ${base}/settings`, { body: { flow_timeout: 1_000_000_000 } })
  const { id } = await startFlow(leafOf(inner), { timeout: 1_000_000_000 })
  const openTasks = async (): Promise<Task[]> =>
    (await kit.call<List<Task>>(`GET ${base}/tasks?kind=escalation&status=pending`)).body.items
  await until(async () => (await openTasks()).length === 1, 'the question is asked')
  const below = await leavesOf(id)
  const deepest = await leavesOf(below[0]?.flow_run_id ?? null)
  const flowRuns = [id, below[0]?.flow_run_id ?? '', deepest[0]?.flow_run_id ?? '']
  await until(async () => {
    const { rows } = await kit.pool.query('select all_wait_since from flow_runs where id = any($1)', [flowRuns])
    return rows.length === 3 && rows.every((row) => row.all_wait_since !== null)
  }, 'every level waits')
  await kit.clock.advance(3_600_000)
  await check()
  for (const each of flowRuns) {
    assert.deepEqual(await alertsOf(each), [])
    const { bottlenecks } = (await kit.call<FlowMetrics>(`GET ${base}/flow-runs/${each}/metrics`)).body
    assert.ok(!bottlenecks.some(({ duration }) => duration > 60_000), JSON.stringify(bottlenecks))
  }
  const [question] = await openTasks()
  const body = { status: 'completed', result: 'You may.' }
  assert.equal((await kit.call(`PATCH ${base}/tasks/${question?.id}`, { body })).status, 200)
  assert.equal((await ended(id)).status, 'completed')
  const { rows } = await kit.pool.query<{ waited: number; people_waits: number }>(
    'select waited, people_waits, all_wait_since from flow_runs where id = any($1)',
    [flowRuns],
  )
  for (const { waited, ...rest } of rows) {
    assert.ok(waited > 3_590_000, `${waited} ms`)
    assert.deepEqual(rest, { people_waits: 0, all_wait_since: null })
  }
  answer = () => ({ text: 'Done.', usage: USAGE })
})

test('a leaf that is at work beside one that waits for a person is an alert of the flow runs above it, too', async () => {
  gate = Promise.withResolvers()
  answer = (prompt) =>
    prompt.includes('tool-result')
      ? { text: 'Done.' }
      : { calls: [{ name: 'ask_human', args: { question: 'May I?' } }] }
  const ask = { type: 'task', id: 'ask', agent: 'asking', input: 'Go.' }
  const inner = await createFlowAgent({ type: 'parallel', branches: [ask, held] })
  const { id } = await startFlow(leafOf(inner), { timeout: 1_000_000_000 })
  const read = async () =>
    (await kit.call<List<Task>>(`GET ${base}/tasks?kind=escalation&status=pending`)).body.items[0]
  await until(async () => (await read()) !== undefined, 'the question is asked')
  await kit.clock.advance(3_600_000)
  await check()
  assert.equal((await alertsOf(id)).length, 1)
  const task = await read()
  await kit.call(`PATCH ${base}/tasks/${task?.id}`, { body: { status: 'completed', result: 'Yes.' } })
  gate.resolve()
  await ended(id)
  answer = () => ({ text: 'Done.', usage: USAGE })
})

const asks = (id: string) => ({ type: 'task', id, function: 'muster.ask', args: { prompt: 'Say.' } })
const usedBy = async ({ id }: Agent): Promise<number> =>
  (await kit.call<Agent>(`GET ${base}/agents/${id}`)).body.token_used

test('calls of muster.* functions are reserved from the allocation of the agent that is the flow', async () => {
  const branches = Array.from({ length: 20 }, (_, place) => asks(`ask${place}`))
  const agent = await createFlowAgent({ type: 'parallel', branches }, { token_allocation: 250 })
  const run = await trigger(agent)
  assert.equal(await usedBy(agent), 300, 'one call at most is made beyond the allocation')
  const { progress, error } = await readFlow(run.flow_run_id)
  assert.deepEqual([progress.completed, progress.failed], [3, 17])
  assert.match(error ?? '', /has used up its token allocation/)
  const { rows } = await kit.pool.query('select reserved from agent_tokens where agent_id = $1', [agent.id])
  assert.deepEqual(rows, [{ reserved: 0 }])
})

for (const [name, step] of [
  ['agents', (id: string) => ({ ...work, id })],
  ['muster.* functions', asks],
] as const) {
  test(`a task of an agent that is a flow of ${name} goes on after a top-up, and repeats no leaf`, async () => {
    const inner = await createFlowAgent({ type: 'sequential', steps: [step('c'), step('d')] })
    const steps = [step('a'), step('b'), leafOf(inner), step('e')]
    const agent = await createFlowAgent({ type: 'sequential', steps }, { token_allocation: 250 })
    const task = await kit.call<{ id: string }>(`POST ${base}/tasks`, {
      body: { title: 'Work.', assigned_to: agent.id },
    })
    const runsOf = async (): Promise<Run[]> =>
      (await kit.call<List<Run>>(`GET ${base}/runs?agent_id=${agent.id}`)).body.items
    const read = async () => (await kit.call<Task>(`GET ${base}/tasks/${task.body.id}`)).body
    const isPaused = async () => (await kit.call<Agent>(`GET ${base}/agents/${agent.id}`)).body.status === 'paused'
    await until(isPaused, 'the agent has no tokens')
    await until(async () => (await read()).status === 'pending', 'the task waits for tokens')
    const [paused] = await runsOf()
    assert.deepEqual([paused?.status, paused?.pause_reason], ['paused', 'budget'])
    assert.equal((await readFlow(paused?.flow_run_id ?? null)).status, 'running')
    // A wait for tokens is longer than the time of the flow.
    await kit.clock.advance(2_000_000_000)
    const asked = model.requests.length
    assert.equal((await kit.call(`POST ${base}/agents/${agent.id}/budget`, { body: { add: 1_000 } })).status, 200)
    await until(async () => (await read()).status === 'completed', 'the task is completed')
    assert.deepEqual(
      (await runsOf()).map(({ id, status }) => [id, status]),
      [[paused?.id, 'completed']],
    )
    assert.equal(model.requests.length - asked, 2)
    assert.equal(await usedBy(agent), 500)
  })
}
