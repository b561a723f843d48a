// A call with an unknown outcome: a task asks a person, and the answer, given at the task or at the run, lets the run
// go on.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { insertRuns } from '../../../test/kit/runs.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import type { Model } from '../../kernel/model-call.ts'
import type { Run, Step } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

const models = new Map<string, Model>()
const send = testTool('send', async () => assert.fail('a call that may have been made is not made again'), {
  effect: 'unsafe',
})
const kit = await createTestApp({ models, tools: [send], waits: { waitMs: 20_000 } })
const project = await kit.createProject()
const member = await kit.createKey(project.id, 'member')
const base = `/api/projects/${project.id}`
let isHalted = false
// The process may hear of a halt only after the model is asked.
const model = createScriptedModel(() => ({ text: 'I see.', ...(isHalted ? { waitFor: 'abort' as const } : {}) }))
models.set('script', model)

interface Failure {
  error: { code: string; message: string }
}
const patch = (taskId: string, body: object) =>
  kit.call<Task & Failure>(`PATCH ${base}/tasks/${taskId}`, { token: member.key, body })
const readTask = async (taskId: string): Promise<Task> => (await kit.call<Task>(`GET ${base}/tasks/${taskId}`)).body
const readRun = async (runId: string): Promise<Run> => (await kit.call<Run>(`GET ${base}/runs/${runId}`)).body
const resume = (runId: string, body: object) => kit.call<Run & Failure>(`POST ${base}/runs/${runId}/resume`, { body })

async function until<Value>(look: () => Promise<Value | null | undefined | false>): Promise<Value> {
  for (;;) {
    const seen = await look()
    if (seen) return seen
    await new Promise(setImmediate)
  }
}

const continuationOf = (runId: string): Promise<Run> =>
  until(async () => {
    const { items } = (await kit.call<{ items: Run[] }>(`GET ${base}/runs?limit=200`)).body
    return items.find((run) => run.resumed_from === runId && run.completed_at !== null)
  })

/** A run whose owner died with an unsafe call under way, with the journal that such an owner leaves. */
async function undecided(calls = ['call_1_1']): Promise<{ runId: string; agentId: string; task: Task; tasks: Task[] }> {
  const agent = await kit.createAgent(project.id, { tools: ['send'] })
  const [runId = ''] = await insertRuns(kit.pool, project.id, 1)
  await kit.pool.query('update agent_runs set agent_id = $2 where id = $1', [runId, agent.id])
  const usage = { input_tokens: 1, output_tokens: 1, estimated: false, cost_usd: null }
  const toolCalls = calls.map((id) => ({ id, name: 'send', args: { to: id } }))
  const step = { step: 1, text: 'I send it.', tool_calls: toolCalls, finish_reason: 'tool-calls', usage, duration: 1 }
  const announced = toolCalls.map(({ id, name, args }, index) => ({
    kind: 'tool.started',
    data: { step: 1, call_id: id, name, args, key: `${runId}:1:${index + 1}`, effect: 'unsafe' },
  }))
  await kit.services.journal.append({
    runId,
    fence: 1,
    events: [
      { kind: 'run.started', data: { agent_id: agent.id, input: 'Send it.' } },
      { kind: 'step.completed', data: { ...step, started_at: new Date().toISOString() } },
      ...announced,
      { kind: 'run.recovered', data: { crashes: 1, charged: true } },
    ],
    change: { steps: 1, set: { release: true, ready_in_ms: 0 } },
  })
  kit.services.onReady()
  await until(async () => (await readRun(runId)).completed_at)
  const tasks = await openTasksOf(runId)
  assert.equal(tasks.length, calls.length, 'there is not one task for each call')
  return { runId, agentId: agent.id, task: tasks[0] ?? assert.fail(), tasks }
}

async function openTasksOf(runId: string): Promise<Task[]> {
  const { items } = (await kit.call<{ items: Task[] }>(`GET ${base}/tasks?kind=escalation&status=pending&limit=200`))
    .body
  return items.filter((task) => task.run_id === runId)
}

test('the pause makes a task that names the call, and the steps have the call without a result', async () => {
  const { runId, agentId, task } = await undecided()
  const run = await readRun(runId)
  assert.deepEqual([run.status, run.pause_reason], ['paused', 'outcome_unknown'])
  const { metadata, created_by, priority, assigned_to } = task
  assert.deepEqual(metadata, { run_id: runId, call_id: 'call_1_1', kind: 'outcome_unknown' })
  assert.deepEqual([created_by, priority, assigned_to], [{ type: 'agent', id: agentId }, 'high', null])
  assert.match(task.description, /send.*"to": "call_1_1"/s)
  const { items } = (await kit.call<{ items: Step[] }>(`GET ${base}/runs/${runId}/steps`)).body
  const { seq, started_at, ...row } = items.at(-1) ?? assert.fail()
  assert.ok(seq > 3 && started_at)
  assert.deepEqual(row, {
    step: 1,
    kind: 'tool',
    call_id: 'call_1_1',
    name: 'send',
    args: { to: 'call_1_1' },
    result: null,
    is_error: false,
    blocked: null,
    outcome: 'unknown',
    duration: 0,
  })
})

for (const { result, shown } of [
  { result: 'done', shown: /"done":true/ },
  { result: 'not_done', shown: /not carried out/ },
]) {
  test(`completing the task with ${result} resumes the run with that outcome`, async () => {
    const { runId, task } = await undecided()
    const answer = await patch(task.id, { status: 'completed', result })
    assert.deepEqual([answer.status, answer.body.status, answer.body.result], [200, 'completed', result], answer.text)
    const run = await continuationOf(runId)
    assert.equal(run.status, 'completed')
    assert.match(JSON.stringify(model.requests.at(-1)?.prompt), shown)
    const { rows } = await kit.pool.query(
      `select actor_id from audit_log where action = 'run.start' and target_id = $1`,
      [run.id],
    )
    assert.deepEqual(rows, [{ actor_id: member.id }])
  })
}

test('any other result is 400, a cancel of the task or a change of its call is 409, and nothing changes', async () => {
  const { runId, task } = await undecided()
  for (const body of [
    { status: 'completed' },
    { status: 'completed', result: 'maybe' },
    { status: 'completed', result: { done: true } },
    { status: 'completed', result: null },
    { result: 'perhaps' },
  ]) {
    assert.equal((await patch(task.id, body)).status, 400, JSON.stringify(body))
  }
  assert.equal((await patch(task.id, { status: 'cancelled' })).status, 409)
  assert.equal((await patch(task.id, { metadata: {} })).status, 409)
  assert.deepEqual(await readTask(task.id), task)
  assert.equal((await patch(task.id, { priority: 'urgent' })).status, 200)
  assert.equal((await resume(runId, { outcome: 'done' })).status, 200)
})

test('a resume of the run completes the task with the given outcome', async () => {
  const { runId, task } = await undecided()
  const resumed = await resume(runId, { outcome: 'not_done' })
  assert.deepEqual([resumed.status, resumed.body.status], [200, 'completed'], resumed.text)
  const closed = await readTask(task.id)
  assert.deepEqual([closed.status, closed.result], ['completed', 'not_done'])
  assert.equal((await patch(task.id, { status: 'completed', result: 'done' })).status, 409)
})

test('of several decisions at once, at the task and at the run, one counts and the others are refused', async () => {
  for (let round = 0; round < 5; round++) {
    const { runId, task } = await undecided()
    const answers = await Promise.all([
      patch(task.id, { status: 'completed', result: 'done' }),
      resume(runId, { outcome: 'not_done' }),
      patch(task.id, { status: 'completed', result: 'not_done' }),
      resume(runId, { outcome: 'done' }),
    ])
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409])
    const { rowCount } = await kit.pool.query('select from agent_runs where resumed_from = $1', [runId])
    assert.equal(rowCount, 1)
    assert.equal((await readTask(task.id)).status, 'completed')
  }
})

test('two calls without an outcome have a task each, and the run continues when both are decided', async () => {
  const { runId, tasks } = await undecided(['first', 'second'])
  assert.deepEqual(tasks.map((task) => task.metadata.call_id).toSorted(), ['first', 'second'])
  const { items } = (await kit.call<{ items: Step[] }>(`GET ${base}/runs/${runId}/steps`)).body
  assert.deepEqual(
    items.flatMap((row) => (row.kind === 'tool' ? [[row.call_id, row.args, row.outcome]] : [])),
    [
      ['first', { to: 'first' }, 'unknown'],
      ['second', { to: 'second' }, 'unknown'],
    ],
  )
  const taskOf = (callId: string): Task => tasks.find((task) => task.metadata.call_id === callId) ?? assert.fail()
  assert.equal((await patch(taskOf('second').id, { status: 'completed', result: 'done' })).status, 200)
  const { rowCount } = await kit.pool.query('select from agent_runs where resumed_from = $1', [runId])
  assert.equal(rowCount, 0, 'the other call is undecided')
  const route = `POST ${base}/runs/${runId}/resume`
  const twice = await kit.call(route, { body: { outcome: 'done', call_id: 'second' } })
  assert.equal(twice.status, 409, twice.text)
  const resumed = await kit.call<Run>(route, { body: { outcome: 'not_done' } })
  assert.deepEqual([resumed.status, resumed.body.status, resumed.body.resumed_from], [200, 'completed', runId])
  assert.equal((await readTask(taskOf('first').id)).result, 'not_done')
})

test('a decision about one of several calls is answered with the run, which stays paused', async () => {
  const { runId, tasks } = await undecided(['first', 'second', 'third'])
  const route = `POST ${base}/runs/${runId}/resume`
  const unclear = await kit.call(route, { body: { outcome: 'done' } })
  assert.equal(unclear.status, 400)
  for (const callId of ['first', 'second', 'third']) assert.ok(unclear.text.includes(callId), unclear.text)
  const kept = await kit.call<Run>(route, { body: { outcome: 'done', call_id: 'second', result: 7 } })
  assert.deepEqual([kept.status, kept.body.id, kept.body.status], [200, runId, 'paused'])
  const { rows } = await kit.pool.query(`select action from audit_log where target_id = $1 order by seq desc limit 1`, [
    runId,
  ])
  assert.deepEqual(rows, [{ action: 'run.decide' }])
  for (const task of tasks) {
    const isDecided = task.metadata.call_id === 'second'
    assert.equal((await readTask(task.id)).status, isDecided ? 'completed' : 'pending')
  }
})

test('after a cancel of the run a person must still tell the outcome of the call', async () => {
  const { runId, task } = await undecided()
  assert.equal((await kit.call(`POST ${base}/runs/${runId}/cancel`, { body: {} })).status, 200)
  assert.equal((await readRun(runId)).status, 'paused')
  assert.equal((await readTask(task.id)).status, 'pending')
})

test('where the agent is disabled the task stays open; where it was deleted the word is kept and nothing goes on', async () => {
  const { runId, agentId, task } = await undecided()
  await kit.call(`PATCH ${base}/agents/${agentId}`, { body: { enabled: false } })
  assert.equal((await patch(task.id, { status: 'completed', result: 'done' })).status, 409)
  assert.equal((await readTask(task.id)).status, 'pending')
  await kit.call(`DELETE ${base}/agents/${agentId}`)
  assert.equal((await patch(task.id, { status: 'completed', result: 'done' })).status, 200)
  const { rowCount } = await kit.pool.query('select from agent_runs where resumed_from = $1', [runId])
  assert.equal(rowCount, 0)
})

test('a halted project accepts a decision, and the run goes on after the release', async () => {
  const { runId, task } = await undecided()
  isHalted = true
  await kit.call(`POST ${base}/halt`, { body: {} })
  assert.equal((await patch(task.id, { status: 'completed', result: 'done' })).status, 200)
  await until(async () => {
    const { rows } = await kit.pool.query('select pause_reason from agent_runs where resumed_from = $1', [runId])
    return rows[0]?.pause_reason === 'halted'
  })
  isHalted = false
  await kit.call(`POST ${base}/unhalt`, { body: {} })
  assert.equal((await continuationOf(runId)).status, 'completed')
})

test('metadata that only looks alike does not turn another task into such a question', async () => {
  const { runId } = await undecided()
  const forged = { run_id: runId, call_id: 'call_1_1', kind: 'outcome_unknown' }
  const made = await kit.call<Task>(`POST ${base}/tasks`, { body: { title: 'A task', metadata: forged } })
  assert.equal((await patch(made.body.id, { status: 'completed', result: 'anything' })).status, 200)
  const { rowCount } = await kit.pool.query('select from agent_runs where resumed_from = $1', [runId])
  assert.equal(rowCount, 0)
})
