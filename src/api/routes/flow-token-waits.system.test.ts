// The task of an agent that is a flow waits for tokens: the time of its flow runs, and ends that come meanwhile.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { inTransaction } from '../../db/transaction.ts'
import { endTokenWait } from '../../flows/execution/token-waits.ts'
import type { Agent } from '../../kernel/agent.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import type { Run } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'
import { planAttempt } from '../../org/plan-attempt.ts'
import { WORK_COLUMNS, type WorkTask } from '../../org/work-row.ts'

type List<Item> = { items: Item[] }

const model = createScriptedModel(() => ({ text: 'Done.', usage: { inputTokens: 60, outputTokens: 40 } }))
const kit = await createTestApp({ models: new Map([['script', model]]) })
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
await kit.createAgent(project.id, { name: 'worker' })
await kit.call(`PATCH ${base}/settings`, { body: { cancel_drain: 0 } })
const work = (id: string) => ({ type: 'task', id, agent: 'worker', input: 'Work.' })
const readRun = async (id: string): Promise<Run> => (await kit.call<Run>(`GET ${base}/runs/${id}`)).body
const readTask = async (id: string): Promise<Task> => (await kit.call<Task>(`GET ${base}/tasks/${id}`)).body
const taskIs = (id: string, status: string) => async (): Promise<boolean> => (await readTask(id)).status === status
const isPaused = (id: string, reason: string) => async (): Promise<boolean> =>
  (await readRun(id)).pause_reason === reason

interface Waiting {
  agent: Agent
  taskId: string
  run: Run
  flowRunId: string
}

let made = 0
/** A task whose second leaf waits for tokens, and the attempt at it, which is paused. */
async function waitForTokens(): Promise<Waiting> {
  const name = `flow ${++made}`
  const root = {
    type: 'parallel',
    branches: [work('one'), { type: 'sequential', steps: [work('two'), work('three')] }],
  }
  assert.equal((await kit.call(`POST ${base}/flows`, { body: { name, root } })).status, 201)
  const flowAgent = { flow_type: 'flow', flow: name, model: null, token_allocation: 150 } as const
  const agent = await kit.createAgent(project.id, flowAgent)
  const task = await kit.call<Task>(`POST ${base}/tasks`, { body: { title: 'Work.', assigned_to: agent.id } })
  await until(taskIs(task.body.id, 'in-progress'), 'the task is taken up')
  await until(taskIs(task.body.id, 'pending'), 'the task waits for tokens')
  const runs = await kit.call<List<Run>>(`GET ${base}/runs?agent_id=${agent.id}`)
  const [run] = runs.body.items
  assert.ok(run?.flow_run_id)
  assert.deepEqual([run.status, run.pause_reason, runs.body.items.length], ['paused', 'budget', 1])
  return { agent, taskId: task.body.id, run, flowRunId: run.flow_run_id }
}

/** Longer than the time of a flow. */
const LONG_MS = 2_000_000_000

/** The statements of a top-up and of the organisation, which takes up the task, with this change of the attempt. */
async function fund({ agent, taskId, run }: Waiting, change: string): Promise<void> {
  await kit.pool.query('update agents set token_allocation = 10000, updated_at = muster.now() where id = $1', [
    agent.id,
  ])
  await kit.pool.query(`update tasks set status = 'in-progress' where id = $1`, [taskId])
  await kit.pool.query(
    `update agent_runs set is_task_open = true, waits_for = null, ready_at = muster.now() ${change} where id = $1`,
    [run.id],
  )
}

async function assertOneAdjustment(flowRunId: string): Promise<void> {
  const { rows } = await kit.pool.query<{ timeout: number }>(
    `select (data->>'timeout')::bigint as timeout from flow_events where run_id = $1 and kind = 'flow.adjusted'`,
    [flowRunId],
  )
  assert.equal(rows.length, 1)
  assert.ok(Number(rows[0]?.timeout) > LONG_MS, `${rows[0]?.timeout} ms`)
  const { rows: audited } = await kit.pool.query(
    `select action, actor_type from audit_log where target_id = $1 and action = 'flow.adjust'`,
    [flowRunId],
  )
  assert.deepEqual(audited, [{ action: 'flow.adjust', actor_type: 'system' }])
}

test('a flow run has more time after a wait for tokens, also if a process dies before it gives the time', async () => {
  const waiting = await waitForTokens()
  await kit.clock.advance(LONG_MS)
  // The process that claimed the attempt is dead: the attempt is ready again, and was not paused last.
  await fund(waiting, `, status = 'running', pause_reason = null`)
  await until(taskIs(waiting.taskId, 'completed'), 'the task is completed')
})

test('a flow run has more time after a wait for tokens that ends while the project is halted', async () => {
  const waiting = await waitForTokens()
  await kit.clock.advance(LONG_MS)
  assert.equal((await kit.call(`POST ${base}/halt`)).status, 200)
  await fund(waiting, '')
  await until(isPaused(waiting.run.id, 'halted'), 'the attempt pauses because of the halt')
  assert.equal((await kit.call(`POST ${base}/unhalt`)).status, 200)
  await until(taskIs(waiting.taskId, 'completed'), 'the task is completed')
})

test('the time of a wait for tokens is given once', async () => {
  const { agent, taskId, run, flowRunId } = await waitForTokens()
  await kit.clock.advance(LONG_MS)
  const given = await Promise.all([1, 2, 3].map(() => endTokenWait(kit.pool, run.id, flowRunId)))
  assert.deepEqual(given.toSorted(), [false, false, true])
  await kit.call(`POST ${base}/agents/${agent.id}/budget`, { body: { add: 10_000 } })
  await until(taskIs(taskId, 'completed'), 'the task is completed')
  await assertOneAdjustment(flowRunId)
})

test('the time of a wait for tokens is given while another process writes the flow run', async () => {
  const { agent, taskId, run, flowRunId } = await waitForTokens()
  await kit.clock.advance(LONG_MS)
  const giving = await inTransaction(kit.pool, async (tx) => {
    await tx.query('update flow_runs set last_seq = last_seq where id = $1', [flowRunId])
    const given = endTokenWait(kit.pool, run.id, flowRunId)
    const isWaiting = async (): Promise<boolean> => {
      const { rowCount } = await kit.pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
         and query like '%flow.adjusted%'`,
      )
      return rowCount === 1
    }
    await until(isWaiting, 'the statement waits for the flow run')
    return { given }
  })
  assert.equal(await giving.given, true)
  await kit.call(`POST ${base}/agents/${agent.id}/budget`, { body: { add: 10_000 } })
  await until(taskIs(taskId, 'completed'), 'the task is completed')
  await assertOneAdjustment(flowRunId)
})

test('an attempt that waits for tokens ends when its flow run is cancelled, and so does its task', async () => {
  const { taskId, run, flowRunId } = await waitForTokens()
  assert.equal((await kit.call(`POST ${base}/flow-runs/${flowRunId}/cancel`)).status, 200)
  await until(async () => (await readRun(run.id)).status === 'cancelled', 'the attempt is cancelled')
  await until(taskIs(taskId, 'cancelled'), 'the task is cancelled')
})

test('an attempt that waits for tokens completes when its flow run ends, and its task is not tried again', async () => {
  const { agent, taskId, run, flowRunId } = await waitForTokens()
  const leaves = await kit.call<List<Run>>(`GET ${base}/runs?flow_run_id=${flowRunId}&status=paused`)
  assert.equal(leaves.body.items.length, 1)
  assert.equal((await kit.call(`POST ${base}/runs/${leaves.body.items[0]?.id}/cancel`)).status, 200)
  await until(async () => (await readRun(run.id)).status === 'completed', 'the attempt completes')
  const flow = await kit.call<FlowRun>(`GET ${base}/flow-runs/${flowRunId}`)
  assert.equal(flow.body.status, 'partial')
  await until(taskIs(taskId, 'completed'), 'the task is completed')
  const runs = await kit.call<List<Run>>(`GET ${base}/runs?agent_id=${agent.id}`)
  assert.equal(runs.body.items.length, 1)
})

test('a task that is taken up while its attempt ends after a wait for tokens gets no second attempt', async () => {
  const { taskId, run } = await waitForTokens()
  const taken = await inTransaction(kit.pool, async (tx) => {
    // Another process has claimed the attempt, because the flow run has ended.
    await tx.query(
      `update agent_runs set status = 'running', pause_reason = null, waits_for = null, is_task_open = true where id = $1`,
      [run.id],
    )
    const { rows } = await tx.query<WorkTask>(`select ${WORK_COLUMNS} from tasks where id = $1`, [taskId])
    const [task] = rows
    assert.ok(task)
    const agent = { max_steps: null, default_timeout: null, flow_type: 'flow' } as const
    const plan = await planAttempt(tx, { ...task, ...agent, tools: [], steps: [] })
    await tx.query(`update agent_runs set status = 'paused', pause_reason = 'budget' where id = $1`, [run.id])
    return plan
  })
  assert.deepEqual(taken, { next: 'continue', runId: run.id })
})
