// A cancel goes down: a call that a leaf holds is withdrawn with the work above the leaf, and nobody can approve it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import type { Agent } from '../../kernel/agent.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import type { Run } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

let made = 0
let gate = Promise.withResolvers<void>()
const tools = ['refund', 'spawn_agent', 'ask_human']
const callOf = (prompt: string) => {
  if (prompt.includes('delegates')) return { name: 'spawn_agent', args: { agent: 'leaf', input: 'Go.' } }
  return prompt.includes('asks') ? { name: 'ask_human', args: { question: 'May I?' } } : { name: 'refund', args: {} }
}
const model = createScriptedModel(({ prompt }) =>
  prompt.some(({ role }) => role === 'tool')
    ? { text: 'Done.' }
    : { text: 'I…', calls: [callOf(JSON.stringify(prompt))] },
)
const kit = await createTestApp({
  models: new Map([['script', model]]),
  tools: [testTool('refund', async () => ({ number: ++made }), { effect: 'unsafe' })],
  functions: { wait: () => gate.promise.then(() => 'waited') },
})
const project = await kit.createProject('Desk')
const base = `/api/projects/${project.id}`
const get = async <Answer>(path: string): Promise<Answer> => (await kit.call<Answer>(`GET ${base}${path}`)).body
const post = (path: string, body: object = {}) => kit.call<Run & FlowRun & Task>(`POST ${base}${path}`, { body })
for (const [name, prompt] of [
  ['leaf', 'You refund.'],
  ['senior', 'You delegate: delegates.'],
  ['curious', 'You ask: asks.'],
]) {
  await kit.createAgent(project.id, { name: name ?? '', prompt: prompt ?? '', tools, require_approval: ['refund'] })
}
const leaf = (agent = 'leaf') => ({ type: 'task', id: agent.replace(' ', '-'), agent, input: 'Go.' })
const held = { type: 'task', id: 'held', function: 'wait' }

let flows = 0
async function flowAgent(root: object): Promise<Agent> {
  const { name } = (await post('/flows', { name: `flow ${++flows}`, root })).body as unknown as { name: string }
  return kit.createAgent(project.id, { name: `agent ${flows}`, flow_type: 'flow', flow: name, model: null })
}
const begin = async (agent: Agent): Promise<Run> => {
  const headers = { prefer: 'respond-async' }
  return (await kit.call<Run>(`POST ${base}/agents/${agent.id}/trigger`, { body: { input: 'x' }, headers })).body
}
/** The call or the question that waits now, of a leaf of the flow run if one is given. */
async function waiting(kind = 'suggestion', flowRunId?: string | null): Promise<Task> {
  let found: Task | undefined
  await until(async () => {
    const { items } = await get<{ items: Task[] }>(`/tasks?kind=${kind}&status=pending`)
    const leaves = flowRunId ? (await get<{ items: Run[] }>(`/runs?flow_run_id=${flowRunId}`)).items : null
    found = items.find((task) => leaves === null || leaves.some(({ id }) => id === task.run_id))
    return found !== undefined
  }, `a ${kind} is pending`)
  return found ?? assert.fail()
}
const read = (task: Task): Promise<Task> => get<Task>(`/tasks/${task.id}`)
const withdrawn = (task: Task): Promise<void> =>
  until(async () => (await read(task)).status === 'cancelled', 'the call is withdrawn')

async function neverMade(call: Task): Promise<void> {
  await withdrawn(call)
  assert.equal((await post(`/tasks/${call.id}/approve`)).status, 409)
  assert.equal(made, 0)
}

for (const [what, agent] of [
  ['a leaf', 'leaf'],
  ['a sub-run of a leaf', 'senior'],
]) {
  test(`a cancelled flow run withdraws the call of ${what}, and ends without a drain`, async () => {
    const { body: flow } = await post('/flow-runs', { root: leaf(agent) })
    const call = await waiting()
    await post(`/flow-runs/${flow.id}/cancel`)
    await neverMade(call)
    await until(async () => (await get<FlowRun>(`/flow-runs/${flow.id}`)).status === 'cancelled', 'the flow run ends')
  })
}

test('a held call is withdrawn while a leaf beside it drains', async () => {
  gate = Promise.withResolvers()
  const { body: flow } = await post('/flow-runs', { root: { type: 'parallel', branches: [leaf(), held] } })
  const call = await waiting()
  await post(`/flow-runs/${flow.id}/cancel`)
  await neverMade(call)
  assert.equal((await get<FlowRun>(`/flow-runs/${flow.id}`)).status, 'running')
  gate.resolve()
  await until(async () => (await get<FlowRun>(`/flow-runs/${flow.id}`)).status === 'cancelled', 'the flow run ends')
})

for (const [what, end] of Object.entries<(task: Task, agent: Agent) => Promise<{ status: number }>>({
  'is given to another agent': async (task) => {
    const other = await kit.createAgent(project.id, { name: `other ${flows}`, prompt: 'asks', tools })
    return kit.call(`PATCH ${base}/tasks/${task.id}`, { body: { assigned_to: other.id } })
  },
  'is cancelled': (task) => kit.call(`PATCH ${base}/tasks/${task.id}`, { body: { status: 'cancelled' } }),
  'loses its agent': (_, agent) => kit.call(`DELETE ${base}/agents/${agent.id}`),
})) {
  test(`the task of a flow agent that ${what} withdraws the call of its leaf`, async () => {
    const agent = await flowAgent(leaf())
    const { body: task } = await post('/tasks', { title: 'Refund.', assigned_to: agent.id })
    const call = await waiting()
    assert.ok((await end(task, agent)).status < 300)
    await neverMade(call)
  })
}

test('a cancelled run of a flow agent withdraws the calls of the flow runs below, at every level', async () => {
  const inner = await flowAgent(leaf())
  const run = await begin(await flowAgent(leaf(inner.name)))
  const call = await waiting()
  await post(`/runs/${run.id}/cancel`)
  await neverMade(call)
})

for (const [what, above] of Object.entries({
  'the flow run': 'update flow_runs set cancel_requested_at = muster.now() where id = $1',
  'the run above the flow run': `update agent_runs set cancel_requested_at = muster.now()
     where id = (select parent_run_id from flow_runs where id = $1)`,
})) {
  test(`no call is approved and no question answered once ${what} is cancelled, before the cancel comes down`, async () => {
    const agent = await flowAgent({ type: 'parallel', branches: [leaf(), leaf('curious')] })
    const run = await begin(agent)
    let flowRunId: string | null = null
    await until(async () => {
      flowRunId = (await get<Run>(`/runs/${run.id}`)).flow_run_id
      return flowRunId !== null
    }, 'the flow run has begun')
    const [call, question] = [await waiting('suggestion', flowRunId), await waiting('escalation', flowRunId)]
    // Nobody is told. A sweep may bring the cancel down all the same.
    await kit.pool.query(above, [flowRunId])
    const { status, text } = await post(`/tasks/${call.id}/approve`)
    assert.equal(status, 409, text)
    const { status: stands, metadata } = await read(call)
    assert.ok(stands === 'cancelled' || metadata.stale === true, stands)
    const answer = { body: { status: 'completed', result: 'Yes.' } }
    const isWithdrawn = (await read(question)).status === 'cancelled'
    const answered = await kit.call(`PATCH ${base}/tasks/${question.id}`, answer)
    const asking = async (): Promise<Run> => get<Run>(`/runs/${question.run_id}`)
    if (answered.status !== 409)
      await until(async () => (await asking()).status === 'cancelled', 'its run was cancelled')
    const rejected = await post(`/tasks/${call.id}/reject`)
    assert.ok(rejected.status === 200 || (await read(call)).status === 'cancelled', rejected.text)
    assert.equal(made, 0)
    await kit.pool.query('update agent_runs set cancel_requested_at = null where id = $1', [run.id])
    await post(`/runs/${run.id}/cancel`)
    if (!isWithdrawn && answered.status === 409) await withdrawn(question)
  })
}

test('the flow run that resumes a cancelled one asks anew, and its call may be approved', async () => {
  const { body: flow } = await post('/flow-runs', { root: leaf() })
  const call = await waiting()
  await post(`/flow-runs/${flow.id}/cancel`)
  await withdrawn(call)
  await until(async () => (await get<FlowRun>(`/flow-runs/${flow.id}`)).completed_at !== null, 'the flow run ends')
  const { body: resumed, text } = await post(`/flow-runs/${flow.id}/resume`)
  const again = await waiting()
  assert.equal((await post(`/tasks/${again.id}/approve`)).status, 200)
  const status = async () => (await get<FlowRun>(`/flow-runs/${resumed.id}`)).status
  await until(async () => (await status()) === 'completed', `it completes: ${text}`)
  assert.equal(made, 1)
})
