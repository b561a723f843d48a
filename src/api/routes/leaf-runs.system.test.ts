// From a leaf to its run and back, the cost of leaves and flow runs, and leaves whose runs pause.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { createScriptedModel, type ScriptedAnswer } from '../../../test/kit/scripted-model.ts'
import type { FlowTask, Trace } from '../../flows/history/trace.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import type { ModelRequest } from '../../kernel/model-call.ts'
import type { Run } from '../../kernel/run.ts'

/** The answer of the model to a run, by the name of its agent, which is the agent's prompt. */
const answers = new Map<string, (request: ModelRequest) => ScriptedAnswer>()
const usage = { inputTokens: 100, outputTokens: 50, isEstimated: false }
const model = createScriptedModel(
  (request) => {
    const text = JSON.stringify(request.prompt[0])
    const answer = [...answers].find(([name]) => text.includes(name))?.[1]
    return { ...(answer?.(request) ?? { text: 'Done.' }), usage }
  },
  { price: { input: 2, output: 8 } },
)
const COST = (100 * 2 + 50 * 8) / 1_000_000
const kit = await createTestApp({
  models: new Map([['script', model]]),
  functions: {
    echo: (value: unknown) => value,
    wait: (_: unknown, { signal }) => new Promise((stop) => signal.addEventListener('abort', () => stop(null))),
  },
})
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const { runs, start, until, ended, play, tasksOf, eventsOf } = flowCalls(kit, project.id)

const used = (modelCalls: number) => ({
  input_tokens: 100 * modelCalls,
  output_tokens: 50 * modelCalls,
  total_tokens: 150 * modelCalls,
  estimated: false,
  cost_usd: Math.round(modelCalls * COST * 1e9) / 1e9,
})

const spawns =
  (name: string) =>
  (request: ModelRequest): ScriptedAnswer =>
    request.prompt.length > 2
      ? { text: 'Done.' }
      : { calls: [{ name: 'spawn_agent', args: { agent: name, input: 'go' } }] }
async function agent(name: string, answer: (request: ModelRequest) => ScriptedAnswer, more: object = {}) {
  answers.set(name, answer)
  await kit.createAgent(project.id, { name, prompt: `You are ${name}.`, ...more })
  return { type: 'task', agent: name, input: 'Go.' } as const
}
async function flowAgent(name: string, root: object): Promise<{ id: string }> {
  const made = await kit.call(`POST ${base}/flows`, { body: { name, root } })
  assert.equal(made.status, 201, made.text)
  return kit.createAgent(project.id, { name, flow_type: 'flow', flow: name, model: null })
}
const runsOf = async (flowRunId: string, query = '', projectId = project.id) =>
  (
    await kit.call<{ items: Run[]; next_cursor: string | null }>(
      `GET /api/projects/${projectId}/runs?flow_run_id=${flowRunId}${query}`,
    )
  ).body
const taskOf = async (flowRunId: string, id: string): Promise<FlowTask | undefined> =>
  (await tasksOf(flowRunId)).find((task) => task.id === id)

test('a leaf leads to its run and a run to its flow', async () => {
  let calls = 0
  const fails = (): ScriptedAnswer =>
    ++calls === 1 ? { fail: { message: 'no such model', isRetryable: false } } : { text: 'At last.' }
  const leaf = await agent('stubborn', fails)
  const retry = { max_retries: 1, backoff: 0 }
  const run = await play({
    type: 'sequential',
    steps: [
      { ...leaf, id: 'a', retry },
      { type: 'task', id: 'b', function: 'echo' },
    ],
  })
  assert.equal(run.status, 'completed', run.error ?? '')
  const { items } = await runsOf(run.id)
  assert.deepEqual(
    items.map(({ status }) => status),
    ['completed', 'failed'],
    'newest first',
  )
  for (const { trigger } of items) assert.deepEqual(trigger, { type: 'flow', flow_run_id: run.id, task_id: 'a' })
  const [a, b] = await tasksOf(run.id)
  assert.deepEqual([a?.run_id, a?.attempts, b?.run_id], [items[0]?.id, 2, null])

  // The list is paged as others are, and is the project's own.
  const first = await runsOf(run.id, '&limit=1')
  const second = await runsOf(run.id, `&limit=1&cursor=${first.next_cursor}`)
  assert.deepEqual([...first.items, ...second.items], items)
  assert.equal(second.next_cursor, null)
  assert.deepEqual((await runsOf(run.id, '&status=failed')).items, [items[1]])
  const other = await kit.createProject('Another project')
  assert.deepEqual((await runsOf(run.id, '', other.id)).items, [])

  const { body } = await kit.call<Trace>(`GET ${runs}/${run.id}/trace`)
  assert.deepEqual(body.tasks, [a, b])
  for (const format of ['chrome', 'otlp', 'csv']) {
    const { text } = await kit.call(`GET ${runs}/${run.id}/trace?format=${format}`)
    assert.ok(text.includes(items[0]?.id ?? '?'), format)
  }
})

test('usage with cost per leaf and for the whole flow run: all attempts, sub-runs and decisions of a queen', async () => {
  let failures = 0
  const flaky = await agent('flaky', () =>
    ++failures === 1 ? { fail: { message: 'broken', isRetryable: false } } : { text: 'Done.' },
  )
  await agent('grandchild', () => ({ text: 'Deep.' }))
  await agent('child', spawns('grandchild'), { tools: ['spawn_agent'] })
  const parent = await agent('forebear', spawns('child'), { tools: ['spawn_agent'] })
  const decisions: Record<string, unknown> = {
    queen_plan: { subtasks: [{ id: 's', title: 'S', description: 'Do it.', depends_on: [], workers: 1 }] },
    queen_review: { acceptable: true, problems: [], report: 'All is well.' },
  }
  await agent('queen', ({ answerSchema }) => ({ text: JSON.stringify(decisions[answerSchema?.name ?? '']) }))
  await agent('bee', () => ({ text: 'Honey.' }))
  const run = await play({
    type: 'parallel',
    branches: [
      { ...flaky, id: 'flaky', retry: { max_retries: 1, backoff: 0 } },
      { ...parent, id: 'family' },
      { type: 'hierarchical', id: 'hive', queen: 'queen', workers: ['bee'], goal: 'Honey' },
      { type: 'task', id: 'free', function: 'echo' },
    ],
  })
  assert.equal(run.status, 'completed', run.error ?? '')
  const tasks = new Map((await tasksOf(run.id)).map((task) => [task.id, task]))
  assert.deepEqual(tasks.get('flaky')?.usage, used(2))
  assert.deepEqual(tasks.get('family')?.usage, used(5), 'two calls of it, two of its child, one of that one’s child')
  assert.deepEqual(tasks.get('hive/plan 1')?.usage, used(1))
  assert.equal(tasks.get('free')?.usage, null)
  assert.deepEqual((await kit.call<typeof run>(`GET ${runs}/${run.id}`)).body.usage, used(10))
  const sum = [...tasks.values()].reduce((all, task) => all + (task.usage?.total_tokens ?? 0), 0)
  assert.equal(sum, 1_500)
  // The run of the leaf itself shows its own calls alone.
  const { body } = await kit.call<Run>(`GET ${base}/runs/${tasks.get('family')?.run_id}`)
  assert.deepEqual(body.usage, used(2))
})

test('the run of an agent that is a flow has used the tokens of its flow run, and nothing counts twice', async () => {
  await agent('miner', () => ({ text: 'Ore.' }))
  const mine = { type: 'task', agent: 'miner', input: 'Dig.' }
  await flowAgent('pit', { ...mine, id: 'dig' })
  const ask = (name: string) => ({ type: 'task', id: name, agent: name, input: 'Go.' })
  await flowAgent('district', { type: 'parallel', branches: [ask('pit'), { ...mine, id: 'dig' }] })
  await agent('buyer', spawns('pit'), { tools: ['spawn_agent'] })
  const country = await flowAgent('country', { type: 'parallel', branches: [ask('district'), ask('buyer')] })
  const { body: run } = await kit.call<Run>(`POST ${base}/agents/${country.id}/trigger`, { body: { input: 'Go.' } })
  assert.equal(run.status, 'completed', run.error_message ?? '')
  assert.deepEqual(run.usage, used(5), 'two calls of the district, two of the buyer, one of the pit of the buyer')
  const usageOf = async (flowRunId: string | null): Promise<unknown[]> => {
    const flow = await kit.call<FlowRun>(`GET ${runs}/${flowRunId}`)
    const tasks = await tasksOf(flowRunId ?? '')
    return [flow.body.usage, Object.fromEntries(tasks.map(({ id, usage: of }) => [id, of]))]
  }
  assert.deepEqual(await usageOf(run.flow_run_id), [used(5), { district: used(2), buyer: used(3) }])
  const leaves = (await runsOf(run.flow_run_id ?? '')).items
  const district = leaves.find(({ flow_run_id }) => flow_run_id !== null)
  assert.deepEqual(district?.usage, used(2))
  assert.deepEqual(await usageOf(district?.flow_run_id ?? null), [used(2), { pit: used(1), dig: used(1) }])
  const pit = (await runsOf(district?.flow_run_id ?? '')).items.find(({ flow_run_id }) => flow_run_id !== null)
  assert.deepEqual(pit?.usage, used(1))
  const buyer = leaves.find(({ flow_run_id }) => flow_run_id === null)
  assert.deepEqual(buyer?.usage, used(2), 'the calls of sub-runs are not its own')
  const { body } = await kit.call<{ items: Run[] }>(`GET ${base}/runs?parent_run_id=${buyer?.id}`)
  assert.deepEqual(
    body.items.map((spawned) => spawned.usage),
    [used(1)],
  )
})

test('a run that is cancelled before its flow run ends has used its tokens all the same', async () => {
  await kit.call(`PATCH ${base}/settings`, { body: { cancel_drain: 0 } })
  await agent('digger', () => ({ text: 'Ore.' }))
  const dig = { type: 'task', id: 'dig', agent: 'digger', input: 'Dig.' }
  await flowAgent('shaft', { type: 'sequential', steps: [dig, { type: 'task', id: 'wait', function: 'wait' }] })
  const outer = await start({ type: 'task', id: 'in', agent: 'shaft', input: 'Go.' })
  await until(outer.id, ({ progress }) => progress.running === 1)
  let inner = (await runsOf(outer.id)).items[0]
  while (!inner?.flow_run_id) inner = (await runsOf(outer.id)).items[0]
  await until(inner.flow_run_id, ({ progress }) => progress.completed === 1 && progress.running === 1)
  await kit.call(`POST ${base}/runs/${inner.id}/cancel`)
  await ended(inner.flow_run_id)
  await ended(outer.id)
  assert.deepEqual((await runsOf(outer.id)).items[0]?.usage, used(1))
  assert.deepEqual((await taskOf(outer.id, 'in'))?.usage, used(1))
  assert.deepEqual((await kit.call<FlowRun>(`GET ${runs}/${outer.id}`)).body.usage, used(1))
})

test('usage that is noted after the end of a flow run is shown, though its trace was read before', async () => {
  const leaf = await agent('settled', () => ({ text: 'Done.' }))
  const run = await play({ ...leaf, id: 'a' })
  assert.equal((await taskOf(run.id, 'a'))?.usage?.total_tokens, 150)
  await kit.pool.query(`select muster.add_usage($1, 'a', true, 1, 1, null, true)`, [run.id])
  const { usage: later } = (await taskOf(run.id, 'a')) ?? {}
  assert.deepEqual([later?.total_tokens, later?.estimated, later?.cost_usd], [152, true, COST])
})

test('a leaf whose run pauses says why and keeps the summary', async () => {
  const never = (request: ModelRequest): ScriptedAnswer =>
    request.toolChoice === 'none'
      ? { text: 'I read two of five files.' }
      : { calls: [{ name: 'object_search', args: { q: String(request.prompt.length) } }] }
  const leaf = await agent('endless', never, { tools: ['object_search'], max_steps: 1 })
  const run = await play({ ...leaf, id: 'reader' })
  assert.equal(run.status, 'failed')
  const [paused] = (await runsOf(run.id)).items
  assert.deepEqual([paused?.status, paused?.pause_reason], ['paused', 'step_limit'])
  const error = `The run ${paused?.id} is paused (step_limit): I read two of five files.`
  assert.equal((await taskOf(run.id, 'reader'))?.error, error)
  assert.equal((await kit.call<Trace>(`GET ${runs}/${run.id}/trace`)).body.tasks[0]?.error, error)
  const failed = (await eventsOf(run.id)).find(({ event }) => event === 'task.failed')
  assert.equal(failed?.data.error, error)
  assert.equal(run.error, `reader: ${error}`)
  // The items of a pipeline say the same.
  const pipeline = await play({ type: 'pipeline', source: [1], stages: [leaf], on_error: 'stop' })
  assert.match(pipeline.error ?? '', /is paused \(step_limit\): I read two of five files\./)
})

test('a leaf whose run pauses without a summary says why, and a long summary is cut', async () => {
  const long = 'word '.repeat(10_000)
  let summary = ''
  const never = (request: ModelRequest): ScriptedAnswer =>
    request.toolChoice === 'none'
      ? { text: summary }
      : { calls: [{ name: 'object_search', args: { q: String(request.prompt.length) } }] }
  const leaf = await agent('speechless', never, { tools: ['object_search'], max_steps: 1 })
  assert.match((await play(leaf)).error ?? '', /is paused \(step_limit\)\.$/)
  summary = long
  const { error } = await play(leaf)
  assert.ok(error && error.length < 20_000 && error.endsWith('…'), error?.slice(-50))
})
