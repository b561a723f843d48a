// The life of a run around a call that waits for a person: sub-runs, deadlines, forks, stops, evals, specialists.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel, type ScriptedAnswer, type ScriptedCall } from '../../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish } from '../../../test/kit/supervisor.ts'
import { until } from '../../../test/kit/until.ts'
import type { AgentInput } from '../../kernel/agent.ts'
import type { ModelRequest } from '../../kernel/model-call.ts'
import type { Run, Step } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

const made: unknown[] = []
const refund = testTool('refund', async (args) => ({ done: made.push((args as { label?: string }).label) > 0 }), {
  effect: 'unsafe',
})
let specialistCalls: ScriptedCall[] = []
const decisions: object[] = []
const hasResult = ({ prompt }: ModelRequest): boolean => prompt.some(({ role }) => role === 'tool')
const kit = await createSupervisor(
  {
    supervisor: () => decisions.shift() ?? finish(),
    work: { research_agent: (request: ModelRequest) => (hasResult(request) ? 'Done.' : { calls: specialistCalls }) },
  },
  { tools: [refund], waits: { waitMs: 60_000 } },
)
const { base, project, models, config } = kit
const timesMade = (label: string): number => made.filter((each) => each === label).length

let count = 0
async function desk(calls: (label: string) => ScriptedCall[], input: Partial<AgentInput> = {}) {
  const label = `desk ${++count}`
  const script = (request: ModelRequest): ScriptedAnswer =>
    hasResult(request) ? { text: 'Done.' } : { text: 'I do it.', calls: calls(label) }
  models.set(label, createScriptedModel(script))
  const agent = await kit.createAgent(project.id, {
    name: label,
    model: { provider: 'test', name: label },
    tools: ['refund'],
    require_approval: ['refund'],
    ...input,
  })
  return { ...agent, label }
}
const refunding = (label: string): ScriptedCall[] => [{ name: 'refund', args: { label } }]
const readRun = (id: string): Promise<Run> => kit.get<Run>(`/runs/${id}`)
const openCalls = async (runId: string): Promise<Task[]> => {
  const { items } = await kit.get<{ items: Task[] }>('/tasks?kind=suggestion&status=pending&limit=200')
  return items.filter((task) => task.run_id === runId)
}
async function trigger(agentId: string, body: object = {}): Promise<Run> {
  const { body: run, text } = await kit.call<Run>(`POST ${base}/agents/${agentId}/trigger`, {
    body: { input: 'Go.', ...body },
  })
  assert.deepEqual([run.status, run.pause_reason], ['paused', 'human'], text)
  return run
}
async function approve(runId: string): Promise<void> {
  const [task] = await openCalls(runId)
  const { status, text } = await kit.call(`POST ${base}/tasks/${task?.id}/approve`)
  assert.equal(status, 200, text)
}
async function ended(runId: string): Promise<Run> {
  await until(async () => (await readRun(runId)).completed_at !== null, 'the run has ended')
  return readRun(runId)
}
const childrenOf = async (runId: string): Promise<Run[]> =>
  (await kit.get<{ items: Run[] }>(`/runs?parent_run_id=${runId}`)).items

test('a sub-run that needs approval is started after it, once', async () => {
  const child = await desk(() => [], { require_approval: [] })
  models.set(
    child.label,
    createScriptedModel(() => ({ text: 'I am the child.' })),
  )
  const spawning = (): ScriptedCall[] => [{ name: 'spawn_agent', args: { agent: child.label, input: 'Help.' } }]
  const parent = await desk(spawning, { tools: ['spawn_agent'], require_approval: ['spawn_agent'] })
  const run = await trigger(parent.id)
  assert.deepEqual(await childrenOf(run.id), [])
  await approve(run.id)
  assert.equal((await ended(run.id)).status, 'completed')
  assert.deepEqual(
    (await childrenOf(run.id)).map(({ summary }) => summary),
    ['I am the child.'],
  )
})

test('the time of the wait does not count for the timeout of the run', async () => {
  const agent = await desk(refunding)
  const run = await trigger(agent.id, { timeout: 60_000 })
  // The run has waited for an hour.
  const hour = `interval '1 hour'`
  await kit.pool.query(
    `update agent_runs set created_at = created_at - ${hour}, started_at = started_at - ${hour} where id = $1`,
    [run.id],
  )
  await kit.pool.query(`update run_events set at = at - ${hour} where run_id = $1`, [run.id])
  await approve(run.id)
  assert.equal((await ended(run.id)).status, 'completed')
  assert.equal(timesMade(agent.label), 1)
})

test('a fork of a run that waits waits for an approval of its own', async () => {
  const agent = await desk(refunding)
  const run = await trigger(agent.id)
  const fork = await kit.call<Run>(`POST ${base}/runs/${run.id}/fork`, { body: { after_step: 1 } })
  assert.deepEqual([fork.status, fork.body.pause_reason], [200, 'human'], fork.text)
  assert.equal((await openCalls(run.id)).length, 1)
  await approve(fork.body.id)
  assert.equal((await ended(fork.body.id)).status, 'completed')
  assert.equal(timesMade(agent.label), 1)
  assert.equal((await readRun(run.id)).pause_reason, 'human')
  await approve(run.id)
  await ended(run.id)
  assert.equal(timesMade(agent.label), 2)
})

test('a call that was approved while its agent was stopped is made once, after the start', async () => {
  const agent = await desk(refunding)
  const { body: task } = await kit.call<Task>(`POST ${base}/tasks`, {
    body: { title: 'Refund', assigned_to: agent.id },
  })
  const attempt = async (): Promise<Run | undefined> =>
    (await kit.get<{ items: Run[] }>(`/runs?agent_id=${agent.id}`)).items[0]
  await until(async () => (await attempt())?.pause_reason === 'human', 'the attempt waits')
  const first = (await attempt())?.id ?? assert.fail()
  await kit.call(`POST ${base}/agents/${agent.id}/stop`)
  await approve(first)
  await until(async () => (await readRun(first)).pause_reason === 'stopped', 'the attempt has stopped')
  assert.equal(timesMade(agent.label), 0)
  await kit.call(`POST ${base}/agents/${agent.id}/start`)
  await until(async () => (await kit.get<Task>(`/tasks/${task.id}`)).status === 'completed', 'the task is done')
  assert.equal(timesMade(agent.label), 1)
})

test('a stopped attempt whose call nobody decided about asks anew when its agent is started', async () => {
  const agent = await desk(() => [
    { name: 'refund', args: { label: 'first' } },
    { name: 'refund', args: { label: 'second' } },
  ])
  await kit.call<Task>(`POST ${base}/tasks`, { body: { title: 'Refund', assigned_to: agent.id } })
  const runs = async (): Promise<Run[]> => (await kit.get<{ items: Run[] }>(`/runs?agent_id=${agent.id}`)).items
  await until(async () => (await runs())[0]?.pause_reason === 'human', 'the attempt waits')
  const first = (await runs())[0]?.id ?? assert.fail()
  const tasks = await openCalls(first)
  await kit.call(`POST ${base}/agents/${agent.id}/stop`)
  const decided = tasks.find((task) => JSON.stringify(task.changes).includes('first'))
  assert.equal((await kit.call(`POST ${base}/tasks/${decided?.id}/reject`)).status, 200)
  await until(async () => (await readRun(first)).pause_reason === 'stopped', 'the attempt has stopped')
  assert.deepEqual(await openCalls(first), [])
  await kit.call(`POST ${base}/agents/${agent.id}/start`)
  await until(async () => (await runs())[0]?.pause_reason === 'human', 'the next attempt waits')
  const next = (await runs())[0]?.id ?? assert.fail()
  assert.notEqual(next, first)
  assert.equal((await openCalls(next)).length, 1)
  await approve(next)
  await ended(next)
  assert.deepEqual([timesMade('first'), timesMade('second')], [0, 1])
})

test('a change of an object that needs approval is stale when the agent has lost the right, and made when it has it', async () => {
  const creating = (label: string): ScriptedCall[] => [
    { name: 'object_create', args: { type: 'Note', properties: { label } } },
  ]
  const agent = await desk(creating, { tools: ['object_create'], require_approval: ['object_create'] })
  const objects = async (): Promise<number> =>
    (await kit.get<{ items: unknown[] }>(`/objects?type=Note&q="${agent.label}"`)).items.length
  const run = await trigger(agent.id)
  const allow = (canCreateObjects: boolean) =>
    kit.call(`PATCH ${base}/agents/${agent.id}`, { body: { capabilities: { canCreateObjects } } })
  await allow(false)
  const [task] = await openCalls(run.id)
  const refused = await kit.call<{ error: { message: string } }>(`POST ${base}/tasks/${task?.id}/approve`)
  assert.equal(refused.status, 409)
  assert.match(refused.body.error.message, /may not create objects/)
  assert.equal(await objects(), 0)
  await allow(true)
  await approve(run.id)
  assert.equal((await ended(run.id)).status, 'completed')
  const { rows } = await kit.pool.query(`select op from object_versions where run_id = $1`, [run.id])
  assert.deepEqual(rows, [{ op: 'create' }])
})

test('the capabilities and the mode of a specialist bind it', async () => {
  const [research, transform] = config.specialists
  const capabilities = {
    canCreateObjects: true,
    canUpdateObjects: false,
    canDeleteObjects: false,
    allowedObjectTypes: ['Note'],
  }
  const tools = ['object_create', 'refund']
  const specialist = { ...research, tools, capabilities, execution_mode: 'hybrid' as const }
  const put = await kit.put('blue', { ...config, specialists: [specialist, transform] })
  assert.equal(put.status, 200, put.text)
  const other = await kit.put('blue', {
    ...config,
    specialists: [{ ...specialist, require_approval: ['pay'] }, transform],
  })
  assert.deepEqual([other.status, /require_approval/.test(other.text)], [400, true])
  const create = (type: string, apply: string) => ({
    name: 'object_create',
    args: { type, properties: {}, apply, reasoning: 'It is needed.' },
  })
  specialistCalls = [create('Note', 'execute'), create('Secret', 'execute'), create('Note', 'suggest')]
  decisions.push(delegate('research_agent'))
  const answer = await kit.run('Do it.')
  const [run] = await childrenOf(answer.body.metadata.run_id)
  const { items } = await kit.get<{ items: Step[] }>(`/runs/${run?.id}/steps`)
  assert.deepEqual(
    items.flatMap((step) =>
      step.kind === 'tool' ? [step.blocked ?? JSON.stringify(step.result).includes('suggested')] : [],
    ),
    [false, 'capability', true],
  )
})

test('a call of a specialist is stale when its variant no longer gives it the tool, the right or the place', async () => {
  const [research, transform] = config.specialists
  const tools = ['refund', 'object_create']
  const specialist = { ...research, tools, require_approval: tools }
  const put = async (first: object | null) => {
    const { status, text } = await kit.put('blue', { ...config, specialists: [...(first ? [first] : []), transform] })
    assert.equal(status, 200, text)
  }
  await put(specialist)
  const note = { type: 'Note', properties: {}, reasoning: 'It is needed.' }
  specialistCalls = [...refunding('specialist'), { name: 'object_create', args: note }]
  decisions.push(delegate('research_agent'))
  const answered = kit.run('Refund it.')
  const open = async (): Promise<Task[]> =>
    (await kit.get<{ items: Task[] }>('/tasks?kind=suggestion&status=pending&limit=200')).items.filter(
      (task) => task.run_id !== null && /refund|object_create/.test(JSON.stringify(task.changes)),
    )
  await until(async () => (await open()).length === 2, 'both calls wait')
  const isRefund = ({ changes }: Task): boolean => JSON.stringify(changes).includes('refund')
  const refundTask = (await open()).find(isRefund)
  const noteTask = (await open()).find((task) => !isRefund(task))
  const approving = (task: Task | undefined) =>
    kit.call<{ error: { message: string } }>(`POST ${base}/tasks/${task?.id}/approve`)
  const deny = { canCreateObjects: false, canUpdateObjects: false, canDeleteObjects: false }
  for (const [present, task, why] of [
    [{ ...specialist, tools: [], require_approval: [] }, refundTask, /no longer has this tool/],
    [null, refundTask, /specialist was removed/],
    [{ ...specialist, capabilities: deny }, noteTask, /may not create objects/],
  ] as const) {
    await put(present)
    const refused = await approving(task)
    assert.equal(refused.status, 409, refused.text)
    assert.match(refused.body.error.message, why)
    const { metadata } = await kit.get<Task>(`/tasks/${task?.id}`)
    assert.equal(metadata.stale, true)
  }
  assert.equal(timesMade('specialist'), 0)
  await put(specialist)
  for (const task of [refundTask, noteTask]) assert.equal((await approving(task)).status, 200)
  assert.equal((await answered).body.result.status, 'DONE')
  assert.equal(timesMade('specialist'), 1)
})

test('an eval asks nobody about a call, and does not make it', async () => {
  const [research, transform] = config.specialists
  specialistCalls = [
    { name: 'refund', args: { label: 'eval' } },
    { name: 'object_search', args: {} },
  ]
  const tools = ['refund', 'object_search']
  const specialist = { ...research, tools, require_approval: tools }
  assert.equal((await kit.put('blue', { ...config, specialists: [specialist, transform] })).status, 200)
  decisions.push(delegate('research_agent'))
  const before = (await kit.pool.query(`select from tasks where kind = 'suggestion'`)).rowCount
  const { body } = await kit.call<{ id: string }>(`POST ${base}/evals`, {
    body: { name: 'Held', cases: [{ task: 'Refund it.', expect: {} }], variants: ['blue'] },
  })
  await until(
    async () => (await kit.get<{ status: string }>(`/evals/${body.id}`)).status === 'completed',
    'the eval is completed',
    30_000,
  )
  assert.equal((await kit.pool.query(`select from tasks where kind = 'suggestion'`)).rowCount, before)
  assert.equal(timesMade('eval'), 0)
  const { rows } = await kit.pool.query<{ applied: string }>(
    `select data->'result'->>'applied' as applied from run_events e join agent_runs r on r.id = e.run_id
     where r.trigger->>'eval_id' = $1 and e.kind = 'tool.completed' and e.origin_seq is null`,
    [body.id],
  )
  assert.deepEqual(rows, [{ applied: 'false' }, { applied: 'false' }])
})
