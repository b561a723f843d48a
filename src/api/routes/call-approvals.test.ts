// A call that needs approval waits for a person; the decision is checked again and carried out once, in the same run.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel, type ScriptedCall } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import type { AgentInput } from '../../kernel/agent.ts'
import type { Model } from '../../kernel/model-call.ts'
import type { Run, Step } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

const models = new Map<string, Model>()
const made: { tool: string; args: unknown; key: string }[] = []
const tool = (name: string, effect: 'readonly' | 'keyed' | 'unsafe') =>
  testTool(name, async (args, { key }) => ({ done: made.push({ tool: name, args, key }) > 0 }), { effect })
const refund = tool('refund', 'unsafe')
const { inputSchema } = refund
let untilSlow = Promise.withResolvers<void>()
const slow = testTool('slow', () => untilSlow.promise.then(() => ({})), { effect: 'readonly' })
const tools = [refund, tool('pay', 'keyed'), tool('look', 'readonly'), slow]
const kit = await createTestApp({ models, tools, waits: { waitMs: 20_000 } })
const project = await kit.createProject('Desk')
const member = await kit.createKey(project.id, 'member')
const base = `/api/projects/${project.id}`

interface Failure {
  error: { code: string; message: string }
}
const decide = (id: string, verb: 'approve' | 'reject', body?: object) =>
  kit.call<Task & Failure>(`POST ${base}/tasks/${id}/${verb}`, { token: member.key, ...(body ? { body } : {}) })
const readTask = async (id: string): Promise<Task> => (await kit.call<Task>(`GET ${base}/tasks/${id}`)).body
const readRun = async (id: string): Promise<Run> => (await kit.call<Run>(`GET ${base}/runs/${id}`)).body
const stepsOf = async (id: string): Promise<Step[]> =>
  (await kit.call<{ items: Step[] }>(`GET ${base}/runs/${id}/steps`)).body.items
const suggestionsOf = async (runId: string): Promise<Task[]> => {
  const { items } = (await kit.call<{ items: Task[] }>(`GET ${base}/tasks?kind=suggestion&limit=200`)).body
  return items.filter((task) => task.run_id === runId).toReversed()
}
const callsOf = (label: string) => made.filter(({ args }) => (args as { label?: string }).label === label)

let named = 0
/** An agent that makes these calls in its first step and then ends. */
async function desk(
  calls: readonly ScriptedCall[],
  input: Partial<AgentInput> = {},
): Promise<{ id: string; label: string }> {
  const label = `desk ${++named}`
  const model = createScriptedModel([
    { text: 'I refund it.', calls: calls.map((call) => ({ ...call, args: labelled(call.args, label) })) },
    { text: 'Done.' },
  ])
  models.set(label, model)
  const agent = await kit.createAgent(project.id, {
    name: label,
    model: { provider: 'test', name: label },
    tools: ['refund', 'pay', 'look'],
    require_approval: ['refund'],
    ...input,
  })
  return { id: agent.id, label }
}
const labelled = (args: unknown, label: string): unknown => ({ ...(args as object), label })

async function waiting(agentId: string): Promise<{ run: Run; tasks: Task[]; task: Task }> {
  const { body: run } = await kit.call<Run>(`POST ${base}/agents/${agentId}/trigger`, { body: { input: 'Go.' } })
  assert.deepEqual([run.status, run.pause_reason], ['paused', 'human'])
  const tasks = await suggestionsOf(run.id)
  return { run, tasks, task: tasks[0] ?? assert.fail('nothing was suggested') }
}

async function ended(runId: string): Promise<Run> {
  await until(async () => (await readRun(runId)).completed_at !== null, 'the run has ended')
  return readRun(runId)
}
const refundOf = async (input: Partial<AgentInput> = {}) => desk([{ name: 'refund', args: { amount: 5 } }], input)
const isStale = async (id: string): Promise<unknown[]> => {
  const { status, metadata } = await readTask(id)
  return [status, metadata.stale, typeof metadata.stale_reason]
}
const patchAgent = (id: string, body: object) => kit.call<Failure>(`PATCH ${base}/agents/${id}`, { body })
const set = (body: object) => kit.call(`PATCH ${base}/settings`, { body })
async function resultOf(runId: string): Promise<unknown> {
  const step = (await stepsOf(runId)).find((each) => each.kind === 'tool')
  return step?.kind === 'tool' ? step.result : null
}

test('an approved call is made once, in the same run, and the model gets its result', async () => {
  const { id, label } = await desk([{ name: 'refund', args: { amount: 5 } }])
  const { run, task } = await waiting(id)
  assert.deepEqual([run.waiting_for, run.is_wait], ['approval', true])
  const { title, changes, reasoning, metadata, created_by: by, run_id: runId, status } = task
  assert.deepEqual(changes, [{ op: 'call', tool: 'refund', args: { amount: 5, label } }])
  assert.deepEqual(metadata, { run_id: run.id, call_id: 'call_1_1' })
  assert.deepEqual(
    [title, reasoning, by, runId, status],
    ['Call refund', 'I refund it.', { type: 'agent', id }, run.id, 'pending'],
  )
  assert.equal(callsOf(label).length, 0)
  const answer = await decide(task.id, 'approve')
  assert.deepEqual(
    [answer.status, answer.body.status, answer.body.result],
    [200, 'completed', { approved_by: member.id }],
    answer.text,
  )
  const end = await ended(run.id)
  assert.deepEqual([end.status, end.summary], ['completed', 'Done.'])
  assert.equal(callsOf(label).length, 1)
  const step = (await stepsOf(run.id)).find((each) => each.kind === 'tool')
  assert.deepEqual(step?.kind === 'tool' && [step.name, step.result, step.is_error], ['refund', { done: true }, false])
  assert.equal((await decide(task.id, 'approve')).status, 409)
})

test('a rejected call is not made, and the model gets the reason', async () => {
  const { id, label } = await refundOf()
  const { run, task } = await waiting(id)
  const answer = await decide(task.id, 'reject', { reason: 'Too much.' })
  assert.deepEqual([answer.status, answer.body.status, answer.body.result], [200, 'rejected', { reason: 'Too much.' }])
  assert.equal((await ended(run.id)).status, 'completed')
  assert.match(JSON.stringify(await resultOf(run.id)), /rejected.*Too much\./)
  assert.equal(callsOf(label).length, 0)
  assert.equal((await decide(task.id, 'approve')).status, 409)
})

test('the journal and the audit log name the person who decided', async () => {
  for (const verb of ['approve', 'reject'] as const) {
    const { run, task } = await waiting((await refundOf()).id)
    await decide(task.id, verb)
    await ended(run.id)
    const { rows } = await kit.pool.query<{ data: Record<string, unknown> }>(
      `select data from run_events where run_id = $1 and kind = 'tool.decided'`,
      [run.id],
    )
    const decision = verb === 'approve' ? 'approved' : 'rejected'
    assert.deepEqual(
      rows.map(({ data }) => [data.call_id, data.decision, data.by, data.task_id]),
      [['call_1_1', decision, member.id, task.id]],
    )
    const noted = await kit.pool.query(`select actor_id from audit_log where action = $1 and target_id = $2`, [
      `task.${verb}`,
      task.id,
    ])
    assert.deepEqual(noted.rows, [{ actor_id: member.id }])
  }
})

test('of twenty approvals and rejections at once a single one decides, and the call is made at most once', async () => {
  const { id, label } = await refundOf()
  const { run, task } = await waiting(id)
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, at) => decide(task.id, at % 2 ? 'approve' : 'reject')),
  )
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assert.equal(answers.filter(({ status }) => status === 409).length, 19)
  await ended(run.id)
  assert.equal(callsOf(label).length, (await readTask(task.id)).status === 'completed' ? 1 : 0)
})

test('several calls wait side by side, and those that need no approval are made at once', async () => {
  const calls = ['refund', 'pay', 'refund', 'look'].map((name, amount) => ({ name, args: { amount } }))
  const { id, label } = await desk(calls)
  const { run, tasks } = await waiting(id)
  assert.deepEqual(
    callsOf(label)
      .map(({ tool }) => tool)
      .toSorted(),
    ['look', 'pay'],
  )
  assert.equal(tasks.length, 2)
  const [first, second] = tasks
  const { body } = await kit.call<{ results: unknown[] }>(`POST ${base}/tasks/approve`, {
    body: { ids: [second?.id, second?.id] },
  })
  assert.deepEqual(body.results, [
    { id: second?.id, ok: true },
    { id: second?.id, ok: true },
  ])
  await until(() => callsOf(label).length === 3, 'the approved call is made')
  await until(async () => (await readRun(run.id)).pause_reason === 'human', 'the run waits for the other one')
  assert.deepEqual(callsOf(label).at(-1)?.args, { amount: 2, label })
  await decide(first?.id ?? '', 'reject')
  assert.equal((await ended(run.id)).status, 'completed')
  const results = (await stepsOf(run.id)).flatMap((step) => (step.kind === 'tool' ? [step.is_error] : []))
  assert.deepEqual(results.toSorted(), [false, false, false, true])
  assert.equal(callsOf(label).length, 3)
})

test('with a question beside the call the run waits for a person, and continues when both are decided', async () => {
  const { id, label } = await refundOf({ tools: ['refund', 'ask_human'] })
  models.set(
    label,
    createScriptedModel([
      {
        calls: [
          { name: 'refund', args: { label } },
          { name: 'ask_human', args: { question: 'How much?' } },
        ],
      },
      { text: 'Done.' },
    ]),
  )
  const { run, task } = await waiting(id)
  assert.equal(run.waiting_for, 'person')
  await decide(task.id, 'approve')
  await until(() => callsOf(label).length === 1, 'the call is made')
  const { items } = (await kit.call<{ items: Task[] }>(`GET ${base}/tasks?kind=escalation&limit=200`)).body
  const question = items.find((each) => each.run_id === run.id)
  await kit.call(`PATCH ${base}/tasks/${question?.id}`, { body: { status: 'completed', result: 'All.' } })
  assert.equal((await ended(run.id)).status, 'completed')
  assert.equal(callsOf(label).length, 1)
})

test('cancelling the run cancels the suggestion, and the call is never made', async () => {
  const { id, label } = await refundOf()
  const { run, task } = await waiting(id)
  assert.equal((await kit.call<Run>(`POST ${base}/runs/${run.id}/cancel`)).body.status, 'cancelled')
  assert.equal((await readTask(task.id)).status, 'cancelled')
  const answer = await decide(task.id, 'approve')
  assert.deepEqual([answer.status, answer.body.error.code], [409, 'CONFLICT'])
  assert.equal(callsOf(label).length, 0)
})

test('deleting the agent cancels the suggestion and ends the run', async () => {
  const { id, label } = await refundOf()
  const { run, task } = await waiting(id)
  assert.equal((await kit.call(`DELETE ${base}/agents/${id}`)).status, 204)
  assert.equal((await readTask(task.id)).status, 'cancelled')
  assert.equal((await ended(run.id)).error_code, 'AGENT_DELETED')
  assert.equal((await decide(task.id, 'approve')).status, 409)
  assert.equal(callsOf(label).length, 0)
})

const staleness: {
  name: string
  change: (agentId: string, runId: string) => Promise<unknown>
  undo?: () => void
  says: RegExp
}[] = [
  { name: 'its agent is disabled', change: (id) => patchAgent(id, { enabled: false }), says: /disabled/ },
  {
    name: 'its agent lost the tool',
    change: (id) => patchAgent(id, { tools: ['look'], require_approval: [] }),
    says: /no longer has this tool/,
  },
  {
    name: 'the arguments of the tool have changed',
    change: async () => Object.assign(refund, { inputSchema: { type: 'object', properties: { order: {} } } }),
    undo: () => Object.assign(refund, { inputSchema }),
    says: /arguments have changed/,
  },
  {
    name: 'its run has ended by a failure',
    change: (_, runId) =>
      kit.pool.query(`update agent_runs set completed_at = now(), status = 'failed', waits_for = null where id = $1`, [
        runId,
      ]),
    says: /no longer waits/,
  },
]
for (const { name, change, undo, says } of staleness) {
  test(`an approval is 409 and marks the suggestion as stale when ${name}; it can be rejected`, async () => {
    const { id, label } = await refundOf()
    const { run, task } = await waiting(id)
    await change(id, run.id)
    const answer = await decide(task.id, 'approve')
    assert.deepEqual([answer.status, answer.body.error.code], [409, 'CONFLICT'])
    assert.match(answer.body.error.message, says)
    assert.deepEqual(await isStale(task.id), ['pending', true, 'string'])
    const many = await kit.call<{ results: { ok: boolean }[] }>(`POST ${base}/tasks/approve`, {
      body: { ids: [task.id] },
    })
    assert.deepEqual(
      many.body.results.map(({ ok }) => ok),
      [false],
    )
    assert.equal((await decide(task.id, 'reject')).status, 200)
    undo?.()
    await ended(run.id)
    assert.equal(callsOf(label).length, 0)
  })
}

test('an agent that was disabled and enabled again can have its call approved, which is then not stale', async () => {
  const { id, label } = await refundOf()
  const { run, task } = await waiting(id)
  await patchAgent(id, { enabled: false })
  assert.equal((await decide(task.id, 'approve')).status, 409)
  await patchAgent(id, { enabled: true })
  const answer = await decide(task.id, 'approve')
  assert.deepEqual([answer.status, answer.body.metadata], [200, { run_id: run.id, call_id: 'call_1_1' }])
  await ended(run.id)
  assert.equal(callsOf(label).length, 1)
})

test('a tool that changed between the approval and the call is not called', async () => {
  const { id, label } = await refundOf()
  const { run, task } = await waiting(id)
  await kit.call(`POST ${base}/halt`)
  assert.equal((await decide(task.id, 'approve')).status, 200)
  Object.assign(refund, { inputSchema: { type: 'object', properties: { order: {} } } })
  await kit.call(`POST ${base}/unhalt`)
  await ended(run.id)
  Object.assign(refund, { inputSchema })
  assert.match(JSON.stringify(await resultOf(run.id)), /have changed since the call was approved/)
  assert.equal(callsOf(label).length, 0)
})

test('in a halted project the decision is kept, and the call is made after the release', async () => {
  const { id, label } = await refundOf()
  const { run, task } = await waiting(id)
  await kit.call(`POST ${base}/halt`)
  assert.equal((await decide(task.id, 'approve')).status, 200)
  await until(async () => (await readRun(run.id)).pause_reason === 'halted', 'the run waits for the release')
  assert.equal(callsOf(label).length, 0)
  await kit.call(`POST ${base}/unhalt`)
  assert.equal((await ended(run.id)).status, 'completed')
  assert.equal(callsOf(label).length, 1)
})

test('after approval_timeout an open suggestion counts as rejected, also where the setting came later', async () => {
  const early = await waiting((await refundOf()).id)
  await set({ approval_timeout: 30 })
  const late = await waiting((await refundOf()).id)
  for (const { run, task } of [early, late]) {
    assert.equal((await ended(run.id)).status, 'completed')
    const { status, result } = await readTask(task.id)
    assert.deepEqual([status, result], ['rejected', { reason: 'Nobody decided within 30 ms (approval_timeout).' }])
    assert.match(JSON.stringify(await resultOf(run.id)), /Nobody decided within 30 ms/)
    const noted = await kit.pool.query(
      `select actor_type from audit_log where action = 'task.reject' and target_id = $1`,
      [task.id],
    )
    assert.deepEqual(noted.rows, [{ actor_type: 'system' }])
  }
  await set({ approval_timeout: null })
})

test('after approval_timeout an approval is refused, also while the run cannot wake', async () => {
  const { id, label } = await refundOf()
  const { run, task } = await waiting(id)
  await kit.call(`POST ${base}/halt`)
  await set({ approval_timeout: 30 })
  await until(async () => Date.now() - Date.parse((await readTask(task.id)).created_at) > 100, 'the time is up')
  assert.equal((await decide(task.id, 'approve')).status, 409)
  assert.equal((await readTask(task.id)).status, 'rejected')
  await kit.call(`POST ${base}/unhalt`)
  assert.equal((await ended(run.id)).status, 'completed')
  assert.equal(callsOf(label).length, 0)
  await set({ approval_timeout: null })
})

test('approval_timeout holds for a run that begins to wait after the setting was changed', async () => {
  untilSlow = Promise.withResolvers()
  const { id } = await desk([{ name: 'slow' }, { name: 'refund', args: { amount: 5 } }], {
    tools: ['slow', 'refund'],
  })
  const { body: run } = await kit.call<Run>(`POST ${base}/agents/${id}/trigger`, {
    body: { input: 'Go.' },
    headers: { prefer: 'respond-async' },
  })
  await until(async () => (await suggestionsOf(run.id)).length === 1, 'the call is put before people')
  await set({ approval_timeout: 30 })
  untilSlow.resolve()
  assert.equal((await ended(run.id)).status, 'completed')
  await set({ approval_timeout: null })
})

test('only the priority of such a suggestion can be changed', async () => {
  const { run, task } = await waiting((await refundOf()).id)
  for (const body of [{ status: 'completed' }, { status: 'cancelled' }, { title: 'x' }, { metadata: {} }]) {
    assert.equal((await kit.call(`PATCH ${base}/tasks/${task.id}`, { body })).status, 409)
  }
  assert.equal(
    (await kit.call<Task>(`PATCH ${base}/tasks/${task.id}`, { body: { priority: 'urgent' } })).body.priority,
    'urgent',
  )
  await decide(task.id, 'reject')
  await ended(run.id)
})

test('require_approval takes only tools of the agent, by name or pattern', async () => {
  const input = { name: 'Named', tools: ['refund'], model: { provider: 'test', name: 'script' } }
  const create = (body: object) =>
    kit.call<Failure & AgentInput>(`POST ${base}/agents`, { body: { ...input, ...body } })
  for (const name of ['pay', 'mcp:stripe/*', 'nothing', 'ask_human', 'finish_loop', 'not a name']) {
    // None of them is a tool of this agent.
    const answer = await create({ require_approval: [name] })
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'INVALID_REQUEST'], name)
    assert.match(answer.body.error.message, /require_approval/)
  }
  const { status, body } = await create({ require_approval: ['refund'] })
  assert.deepEqual([status, body.require_approval], [201, ['refund']])
  const steps = [{ prompt: 'First.', tools: ['pay'] }, { prompt: 'Then.' }]
  const sequential = await create({ name: 'Steps', flow_type: 'sequential', steps, require_approval: ['pay'] })
  assert.equal(sequential.status, 201)
  const { body: made } = await kit.call<{ id: string; require_approval: string[] }>(`POST ${base}/agents`, {
    body: { ...input, name: 'Free' },
  })
  assert.deepEqual(made.require_approval, [])
  assert.equal((await patchAgent(made.id, { require_approval: ['pay'] })).status, 400)
  assert.equal((await patchAgent(made.id, { tools: ['pay'], require_approval: ['pay'] })).status, 200)
  assert.equal((await patchAgent(made.id, { tools: ['look'] })).status, 400)
})
