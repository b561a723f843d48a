// Agents that are flows, as a client of the API sees them: `flow_type: "flow"`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { createScriptedModel, type ScriptedAnswer } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { pruneFlowRuns } from '../../flows/history/prune-flow-runs.ts'
import type { Agent } from '../../kernel/agent.ts'
import type { AppFunction } from '../../kernel/app.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import type { Run, Step } from '../../kernel/run.ts'
import { pruneRuns } from '../../runs/prune-runs.ts'

type List<Item> = { items: Item[] }

let gate = Promise.withResolvers<void>()
let stopped = Promise.withResolvers<void>()
const wait: AppFunction = async (_: unknown, { signal }) => {
  signal.addEventListener('abort', () => stopped.resolve())
  await Promise.race([gate.promise, stopped.promise])
  return 'waited'
}
let answer: (prompt: string) => ScriptedAnswer = () => ({ text: 'An agent was here.' })
const kit = await createTestApp({
  models: new Map([['script', createScriptedModel((request) => answer(JSON.stringify(request.prompt)))]]),
  functions: {
    wait,
    echo: (given: unknown) => given,
    broken: () => {
      throw new Error('The well is dry.')
    },
  },
})
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const { eventsOf } = flowCalls(kit, project.id)
const leafAgent = await kit.createAgent(project.id, { name: 'leaf' })
const echo = (args: unknown = '{{input}}') => ({ type: 'task', id: 'echo', function: 'echo', args })
const leaf = { type: 'task', id: 'ask', agent: 'leaf', input: '{{input}}' }

let flows = 0
async function createFlow(root: object): Promise<{ id: string; name: string }> {
  const made = await kit.call<{ id: string; name: string }>(`POST ${base}/flows`, {
    body: { name: `flow ${++flows}`, root },
  })
  assert.equal(made.status, 201, made.text)
  return made.body
}

const createFlowAgent = async (root: object, more: Partial<Agent> = {}): Promise<Agent> =>
  kit.createAgent(project.id, { flow_type: 'flow', flow: (await createFlow(root)).name, model: null, ...more })

async function trigger(agent: Agent, input: string | object = 'rain', more: object = {}): Promise<Run> {
  const given = await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { body: { input, ...more } })
  assert.equal(given.status, 200, given.text)
  return given.body
}
async function begin(agent: Agent, input: string | object = 'rain'): Promise<Run> {
  const headers = { prefer: 'respond-async' }
  return (await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { body: { input }, headers })).body
}
const readRun = async (id: string): Promise<Run> => (await kit.call<Run>(`GET ${base}/runs/${id}`)).body
const readFlow = async (id: string | null): Promise<FlowRun> =>
  (await kit.call<FlowRun>(`GET ${base}/flow-runs/${id}`)).body
const stepsOf = async (id: string): Promise<Step[]> =>
  (await kit.call<List<Step>>(`GET ${base}/runs/${id}/steps`)).body.items
const leavesOf = async (flowRunId: string | null): Promise<Run[]> =>
  (await kit.call<List<Run>>(`GET ${base}/runs?flow_run_id=${flowRunId}`)).body.items
const hasEnded = (id: string) => async (): Promise<boolean> => (await readRun(id)).completed_at !== null
const isUnderWay = (id: string) => async (): Promise<boolean> => {
  const run = await readRun(id)
  return run.flow_run_id !== null && (await readFlow(run.flow_run_id)).progress.running > 0
}

test('an agent may be a flow: its run completes with the output of the flow run, and leads to it', async () => {
  const agent = await createFlowAgent({ type: 'sequential', steps: [leaf, echo('{{previous}} It rained.')] })
  const run = await trigger(agent)
  assert.deepEqual([run.status, run.summary], ['completed', 'An agent was here. It rained.'])
  const flow = await readFlow(run.flow_run_id)
  assert.deepEqual([flow.status, flow.input, flow.output], ['completed', 'rain', run.summary])
  assert.equal(flow.parent_run_id, run.id)
  const [step, ...rest] = await stepsOf(run.id)
  assert.deepEqual(rest, [])
  assert.partialDeepStrictEqual(step, { kind: 'flow', flow_run_id: flow.id, duration: flow.duration })
  const { rows } = await kit.pool.query<{ kind: string; data: object }>(
    `select kind, data from run_events where run_id = $1 and kind like 'flow.%' order by seq`,
    [run.id],
  )
  assert.deepEqual(rows[0], { kind: 'flow.started', data: { flow_run_id: flow.id } })
  const [leafRun] = await leavesOf(flow.id)
  assert.partialDeepStrictEqual(leafRun, { agent_id: leafAgent.id, trigger: { type: 'flow', flow_run_id: flow.id } })
  assert.equal((await eventsOf(flow.id)).at(-1)?.event, 'flow.completed')
})

test('an output that is no text becomes JSON, and a partial flow run completes its run', async () => {
  const object = await trigger(await createFlowAgent(echo()), { topic: 'rain' })
  assert.deepEqual([object.status, object.summary], ['completed', '{"topic":"rain"}'])
  const branches = [echo(), { type: 'task', id: 'broken', function: 'broken' }]
  const partial = await trigger(await createFlowAgent({ type: 'parallel', branches }))
  assert.deepEqual([partial.status, partial.summary], ['completed', '["rain",null]'])
  assert.equal((await readFlow(partial.flow_run_id)).status, 'partial')
})

test('a flow run that fails or takes too long fails its run with FLOW_FAILED, and says why', async () => {
  const failed = await trigger(await createFlowAgent({ type: 'task', id: 'b', function: 'broken' }))
  assert.deepEqual([failed.status, failed.error_code], ['failed', 'FLOW_FAILED'])
  assert.match(failed.error_message ?? '', /The well is dry/)
  gate = Promise.withResolvers()
  stopped = Promise.withResolvers()
  const late = await trigger(await createFlowAgent({ type: 'task', id: 'w', function: 'wait' }), 'rain', {
    timeout: 50,
  })
  assert.deepEqual([late.status, late.error_code], ['failed', 'FLOW_FAILED'])
  assert.equal((await readFlow(late.flow_run_id)).status, 'timed_out')
})

test('a run that is cancelled takes its flow run and its leaves down', async () => {
  gate = Promise.withResolvers()
  stopped = Promise.withResolvers()
  await kit.call(`PATCH ${base}/settings`, { body: { cancel_drain: 0 } })
  const agent = await createFlowAgent({ type: 'task', id: 'w', function: 'wait' })
  const run = await begin(agent)
  await until(isUnderWay(run.id), 'the leaf is under way')
  const answered = await kit.call<Run>(`POST ${base}/runs/${run.id}/cancel`)
  assert.equal(answered.status, 200, answered.text)
  await until(hasEnded(run.id), 'the run has ended')
  const ended = await readRun(run.id)
  assert.equal(ended.status, 'cancelled')
  await stopped.promise
  await until(async () => (await readFlow(ended.flow_run_id)).status === 'cancelled', 'the flow run is cancelled')
})

test('an agent that is stopped takes its flow run down, and its task begins again when the agent is started', async () => {
  gate = Promise.withResolvers()
  stopped = Promise.withResolvers()
  const agent = await createFlowAgent({ type: 'task', id: 'w', function: 'wait' })
  const task = await kit.call<{ id: string }>(`POST ${base}/tasks`, { body: { title: 'Wait.', assigned_to: agent.id } })
  const runsOf = async (): Promise<Run[]> =>
    (await kit.call<List<Run>>(`GET ${base}/runs?agent_id=${agent.id}`)).body.items
  await until(async () => (await runsOf()).length === 1, 'the task is taken up')
  const [first] = await runsOf()
  await until(isUnderWay(first?.id ?? ''), 'the leaf is under way')
  assert.equal((await kit.call(`POST ${base}/agents/${agent.id}/stop`)).status, 200)
  const ended = await readRun(first?.id ?? '')
  assert.deepEqual([ended.status, ended.pause_reason], ['paused', 'stopped'])
  await until(async () => (await readFlow(ended.flow_run_id)).status === 'cancelled', 'the flow run is cancelled')
  gate.resolve()
  assert.equal((await kit.call(`POST ${base}/agents/${agent.id}/start`)).status, 200)
  const read = () => kit.call<{ status: string; result: unknown }>(`GET ${base}/tasks/${task.body.id}`)
  await until(async () => (await read()).body.status === 'completed', 'the task is completed')
  assert.equal((await read()).body.result, 'waited')
})

test('a flow run that is cancelled cancels the run that waits for it', async () => {
  gate = Promise.withResolvers()
  stopped = Promise.withResolvers()
  const run = await begin(await createFlowAgent({ type: 'task', id: 'w', function: 'wait' }))
  await until(isUnderWay(run.id), 'the leaf is under way')
  await kit.call(`POST ${base}/flow-runs/${(await readRun(run.id)).flow_run_id}/cancel`)
  await until(hasEnded(run.id), 'the run has ended')
  assert.equal((await readRun(run.id)).status, 'cancelled')
})

test('a run that waits for its flow run holds no slot', async () => {
  gate = Promise.withResolvers()
  stopped = Promise.withResolvers()
  const run = await begin(await createFlowAgent({ type: 'task', id: 'w', function: 'wait' }))
  await until(isUnderWay(run.id), 'the leaf is under way')
  const { rows } = await kit.pool.query('select owner, waits_for from agent_runs where id = $1', [run.id])
  assert.deepEqual(rows, [{ owner: null, waits_for: 'children' }])
  gate.resolve()
  await until(hasEnded(run.id), 'the run has ended')
  assert.equal((await readRun(run.id)).summary, 'waited')
})

test('the rights of a leaf are within those of the run of the flow', async () => {
  await kit.createAgent(project.id, { name: 'writer', tools: ['object_create'] })
  let args: object = { type: 'note', properties: { text: 'rain' } }
  answer = (prompt) =>
    prompt.includes('tool-result') ? { text: 'Written.' } : { calls: [{ name: 'object_create', args }] }
  const root = { type: 'task', id: 'write', agent: 'writer', input: 'Write.' }
  const refused = await trigger(
    await createFlowAgent(root, {
      capabilities: { canCreateObjects: false, canUpdateObjects: true, canDeleteObjects: true },
    }),
  )
  const [refusedLeaf] = await leavesOf(refused.flow_run_id)
  const tool = (await stepsOf(refusedLeaf?.id ?? '')).find((step) => step.kind === 'tool')
  assert.partialDeepStrictEqual(tool, { is_error: true, blocked: 'capability' })
  args = { ...args, reasoning: 'It rains.' }
  const suggesting = await trigger(await createFlowAgent(root, { execution_mode: 'suggest' }))
  const [suggestingLeaf] = await leavesOf(suggesting.flow_run_id)
  const { rows } = await kit.pool.query('select kind from tasks where run_id = $1', [suggestingLeaf?.id])
  assert.deepEqual(rows, [{ kind: 'suggestion' }])
  answer = () => ({ text: 'An agent was here.' })
})

test('the runs of leaves are one level below the run of the flow, and spawn_depth_limit binds', async () => {
  const inner = await createFlowAgent(leaf, { name: 'inner flow' })
  const outer = await createFlowAgent({ type: 'task', id: 'in', agent: inner.name, input: '{{input}}' })
  const run = await trigger(outer)
  const [innerRun] = await leavesOf(run.flow_run_id)
  const [deepest] = await leavesOf(innerRun?.flow_run_id ?? null)
  const { rows } = await kit.pool.query('select depth from agent_runs where id = any($1) order by depth', [
    [run.id, innerRun?.id, deepest?.id],
  ])
  assert.deepEqual(rows, [{ depth: 0 }, { depth: 1 }, { depth: 2 }])
  const usage = (await readFlow(innerRun?.flow_run_id ?? null)).usage
  assert.ok(usage.total_tokens > 0)
  assert.deepEqual((await readFlow(run.flow_run_id)).usage, usage, 'the outer flow has used what the inner has used')
  const itself = await createFlowAgent(leaf, { name: 'ouroboros' })
  const circle = await createFlow({ type: 'task', id: 'again', agent: 'ouroboros', input: '{{input}}' })
  await kit.call(`PATCH ${base}/agents/${itself.id}`, { body: { flow: circle.id } })
  const endless = await trigger(itself)
  assert.deepEqual([endless.status, endless.error_code], ['failed', 'FLOW_FAILED'])
  assert.match(endless.error_message ?? '', /is a part of its own flow/)
  await kit.call(`PATCH ${base}/settings`, { body: { spawn_depth_limit: 1 } })
  const deep = await trigger(outer)
  assert.match(deep.error_message ?? '', /nested 1 deep at most/)
  await kit.call(`PATCH ${base}/settings`, { body: { spawn_depth_limit: 5 } })
})

test('the sub-run of a leaf is one level below the leaf, and spawn_depth_limit binds there, too', async () => {
  await kit.createAgent(project.id, { name: 'spawning', tools: ['spawn_agent'] })
  await createFlowAgent(leaf, { name: 'below the spawning' })
  answer = (prompt) =>
    prompt.includes('Spawn.') && !prompt.includes('tool-result')
      ? { calls: [{ name: 'spawn_agent', args: { agent: 'below the spawning', input: 'x' } }] }
      : { text: 'Done.' }
  const outer = await createFlowAgent({ type: 'task', id: 'in', agent: 'spawning', input: 'Spawn.' })
  const run = await trigger(outer)
  const [leafRun] = await leavesOf(run.flow_run_id)
  const { rows: spawned } = await kit.pool.query<{ depth: number; started_flow_run_id: string | null }>(
    'select depth, started_flow_run_id from agent_runs where parent_run_id = $1',
    [leafRun?.id],
  )
  assert.deepEqual(
    spawned.map(({ depth }) => depth),
    [2],
  )
  const { rows: deepest } = await kit.pool.query('select depth from agent_runs where flow_run_id = $1', [
    spawned[0]?.started_flow_run_id,
  ])
  assert.deepEqual(deepest, [{ depth: 3 }])
  await kit.call(`PATCH ${base}/settings`, { body: { spawn_depth_limit: 2 } })
  const [refused] = await leavesOf((await trigger(outer)).flow_run_id)
  const tool = (await stepsOf(refused?.id ?? '')).find((step) => step.kind === 'tool')
  assert.match(JSON.stringify(tool), /nested 2 deep at most/)
  await kit.call(`PATCH ${base}/settings`, { body: { spawn_depth_limit: 5 } })
  answer = () => ({ text: 'An agent was here.' })
})

test('a flow run that is cancelled tells the flow runs below it at once, also those of spawned agents', async () => {
  gate = Promise.withResolvers()
  stopped = Promise.withResolvers()
  await kit.call(`PATCH ${base}/settings`, { body: { cancel_drain: 3_600_000 } })
  const held = await createFlowAgent({ type: 'task', id: 'w', function: 'wait' }, { name: 'held' })
  answer = (prompt) =>
    prompt.includes('tool-result')
      ? { text: 'Done.' }
      : { calls: [{ name: 'spawn_agent', args: { agent: held.name, input: 'x' } }] }
  const leafOf = (id: string, agent: string) => ({ type: 'task', id, agent, input: 'Spawn.' })
  const branches = [leafOf('a', 'spawning'), leafOf('b', held.name), leafOf('c', held.name)]
  const run = await begin(await createFlowAgent({ type: 'parallel', branches }))
  const below = async () => {
    const { rows } = await kit.pool.query<{ id: string; cancel_requested_at: Date | null }>(
      `select f.id, f.cancel_requested_at from flow_runs f join agent_runs r on r.id = f.parent_run_id
       where r.agent_id = $1 and (f.progress->>'running')::int > 0`,
      [held.id],
    )
    return rows
  }
  await until(async () => (await below()).length === 3, 'the leaves are under way')
  const { flow_run_id: flowRunId } = await readRun(run.id)
  assert.equal((await kit.call(`POST ${base}/flow-runs/${flowRunId}/cancel`)).status, 200)
  const told = async () => (await below()).map((row) => row.cancel_requested_at?.getTime() ?? null)
  await until(async () => (await told()).every((at) => at !== null), 'the flow runs below are told')
  const at = await told()
  assert.deepEqual([at.length, new Set(at).size], [3, 1], 'one transaction tells all of them')
  const ids = (await below()).map(({ id }) => id)
  const { rowCount } = await kit.pool.query(
    `select from audit_log where action = 'flow.cancel' and actor_type = 'system' and target_id = any($1)`,
    [ids],
  )
  assert.equal(rowCount, 3)
  gate.resolve()
  await until(hasEnded(run.id), 'the run ends')
  await kit.call(`PATCH ${base}/settings`, { body: { cancel_drain: 0 } })
  answer = () => ({ text: 'An agent was here.' })
})

test('the tokens of a leaf count for its own agent and for the agent that is the flow', async () => {
  const worker = await kit.createAgent(project.id, { name: 'worker' })
  answer = () => ({ text: 'Done.', usage: { inputTokens: 60, outputTokens: 40 } })
  const steps = [1, 2, 3].map((place) => ({ type: 'task', id: `s${place}`, agent: 'worker', input: 'Work.' }))
  const agent = await createFlowAgent({ type: 'sequential', steps })
  await trigger(agent)
  const usedBy = async (id: string): Promise<number> =>
    (await kit.call<Agent>(`GET ${base}/agents/${id}`)).body.token_used
  assert.deepEqual([await usedBy(worker.id), await usedBy(agent.id)], [300, 300])
  const { rows } = await kit.pool.query('select month_used, reserved from agent_tokens where agent_id = $1', [agent.id])
  assert.deepEqual(rows, [{ month_used: 0, reserved: 0 }], 'the month of the project counts them once')
  await kit.call(`PATCH ${base}/agents/${agent.id}`, { body: { token_allocation: 450 } })
  const short = await trigger(agent)
  assert.deepEqual([short.status, short.error_code], ['failed', 'FLOW_FAILED'])
  const used = await usedBy(agent.id)
  assert.ok(used > 450 - 100 && used <= 550, `${used} tokens are used`)
  await kit.call(`PATCH ${base}/agents/${agent.id}`, { body: { token_allocation: 300 } })
  const none = await trigger(agent)
  assert.deepEqual([none.status, none.error_code, none.flow_run_id], ['failed', 'BUDGET_EXHAUSTED', null])
  answer = () => ({ text: 'An agent was here.' })
})

test('a run goes with its flow run and the runs of the leaves, and stays while one of them must stay', async () => {
  const { id } = await kit.createProject('Forgetful')
  await kit.createAgent(id, { name: 'leaf' })
  await kit.call(`PATCH /api/projects/${id}/settings`, { body: { run_retention_days: 1 } })
  await kit.call(`POST /api/projects/${id}/flows`, { body: { name: 'asking', root: leaf } })
  const agent = await kit.createAgent(id, { flow_type: 'flow', flow: 'asking', model: null })
  const again = () => kit.call<Run>(`POST /api/projects/${id}/agents/${agent.id}/trigger`, { body: { input: 'x' } })
  const kept = (await again()).body
  const gone = (await again()).body
  await kit.pool.query(
    `update agent_runs set status = 'paused', pause_reason = 'outcome_unknown' where flow_run_id = $1`,
    [kept.flow_run_id],
  )
  await kit.clock.advance(3 * 86_400_000)
  const rows = async (): Promise<(string | null)[]> => {
    const sql = 'select id, flow_run_id from agent_runs where project_id = $1'
    const { rows: runs } = await kit.pool.query<{ id: string; flow_run_id: string | null }>(sql, [id])
    const { rows: found } = await kit.pool.query<{ id: string }>('select id from flow_runs where project_id = $1', [id])
    return [...runs.map((run) => run.flow_run_id ?? run.id), ...found.map((flow) => flow.id)].toSorted()
  }
  const left = [kept.id, kept.flow_run_id, kept.flow_run_id].toSorted()
  // A flow run alone does not go before its run.
  await pruneFlowRuns(kit.pool, { projectId: id, days: 1 })
  assert.deepEqual(await rows(), [gone.id, gone.flow_run_id, gone.flow_run_id, ...left].toSorted())
  await pruneRuns(kit.pool)
  await pruneFlowRuns(kit.pool, { projectId: id, days: 1 })
  assert.deepEqual(await rows(), left)
  await kit.clock.advance(-3 * 86_400_000)
})

test('spawn_agent and tasks start flows, too', async () => {
  const agent = await createFlowAgent(echo(), { name: 'echoing' })
  await kit.createAgent(project.id, { name: 'senior', tools: ['spawn_agent'] })
  answer = (prompt) =>
    prompt.includes('tool-result')
      ? { text: 'It said so.' }
      : { calls: [{ name: 'spawn_agent', args: { agent: 'echoing', input: 'rain' } }] }
  const senior = (await kit.call<List<Agent>>(`GET ${base}/agents`)).body.items.find(({ name }) => name === 'senior')
  assert.ok(senior)
  const run = await trigger(senior, 'Ask.')
  const tool = (await stepsOf(run.id)).find((step) => step.kind === 'tool')
  assert.partialDeepStrictEqual(tool, { result: { status: 'completed', summary: 'rain' } })
  answer = () => ({ text: 'An agent was here.' })
  const task = await kit.call<{ id: string }>(`POST ${base}/tasks`, {
    body: { title: 'Rain', description: 'Say it.', assigned_to: agent.id, metadata: { topic: 'rain' } },
  })
  assert.equal(task.status, 201, task.text)
  const read = () => kit.call<{ status: string; result: unknown }>(`GET ${base}/tasks/${task.body.id}`)
  await until(async () => (await read()).body.status === 'completed', 'the task is completed')
  assert.deepEqual(JSON.parse(String((await read()).body.result)), {
    task: { id: task.body.id, title: 'Rain', description: 'Say it.', metadata: { topic: 'rain' } },
  })
})

test('the flow of an agent must be there when the agent is written, and stays while the agent names it', async () => {
  const post = (body: object) => kit.call(`POST ${base}/agents`, { body: { name: 'x', ...body } })
  for (const body of [{ flow_type: 'flow' }, { flow: 'research' }, { flow_type: 'flow', flow: 'no such flow' }])
    assert.equal((await post(body)).status, 400, JSON.stringify(body))
  const flow = await createFlow(echo())
  const byId = await kit.createAgent(project.id, { flow_type: 'flow', flow: flow.id.toUpperCase() })
  assert.equal((await kit.call(`DELETE ${base}/flows/${flow.id}`)).status, 409)
  assert.equal((await kit.call(`PATCH ${base}/flows/${flow.id}`, { body: { name: 'another' } })).status, 200)
  await kit.call(`PATCH ${base}/agents/${byId.id}`, { body: { flow: 'another' } })
  assert.equal((await kit.call(`PATCH ${base}/flows/${flow.id}`, { body: { name: 'third' } })).status, 409)
  assert.equal((await trigger(byId)).summary, 'rain')
  await kit.call(`PATCH ${base}/flows/${flow.id}`, { body: { enabled: false } })
  assert.match((await trigger(byId)).error_message ?? '', /"another" is disabled/)
  await kit.call(`DELETE ${base}/agents/${byId.id}`)
  assert.equal((await kit.call(`DELETE ${base}/flows/${flow.id}`)).status, 204)
})

test('a flow that has the id of another as its name is free while an agent names the other', async () => {
  const flow = await createFlow(echo())
  const agent = await kit.createAgent(project.id, { flow_type: 'flow', flow: flow.id })
  const namesake = await kit.call<{ id: string }>(`POST ${base}/flows`, { body: { name: flow.id, root: echo() } })
  assert.equal((await kit.call(`DELETE ${base}/flows/${namesake.body.id}`)).status, 204)
  assert.equal((await kit.call(`DELETE ${base}/flows/${flow.id}`)).status, 409)
  await kit.call(`DELETE ${base}/agents/${agent.id}`)
})

test('an agent that is a flow continues no steps of a model: it is neither forked to nor resumed', async () => {
  const flow = await createFlow(echo())
  const worker = await kit.createAgent(project.id, { name: 'shifting', max_steps: 1, tools: ['object_search'] })
  answer = (prompt) =>
    prompt.includes('summary') ? { text: 'So far.' } : { calls: [{ name: 'object_search', args: {} }] }
  const paused = await trigger(worker)
  answer = () => ({ text: 'An agent was here.' })
  assert.deepEqual([paused.status, paused.pause_reason], ['paused', 'step_limit'])
  const target = await createFlowAgent(echo())
  const fork = (after_step: number) =>
    kit.call<Run>(`POST ${base}/runs/${paused.id}/fork`, { body: { after_step, agent_id: target.id, input: 'x' } })
  assert.equal((await fork(1)).status, 400)
  assert.equal((await fork(0)).body.summary, 'x')
  const become = { flow_type: 'flow', flow: flow.name, prompt: null, model: null, tools: [] }
  assert.equal((await kit.call(`PATCH ${base}/agents/${worker.id}`, { body: become })).status, 200)
  assert.equal((await kit.call(`POST ${base}/runs/${paused.id}/resume`, { body: {} })).status, 409)
})

test('a template is a flow, and a stored flow of the same name comes first', async () => {
  const template = await kit.createAgent(project.id, { flow_type: 'flow', flow: 'document_summary', model: null })
  assert.equal((await trigger(template, { documents: ['It rained.'] })).flow_run_id !== null, true)
  await kit.call(`POST ${base}/flows`, { body: { name: 'document_summary', root: echo('stored') } })
  assert.equal((await trigger(template)).summary, 'stored')
})
