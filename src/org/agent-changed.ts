// After an agent was changed or deleted, its tasks, its subordinates and its runs are changed in the same transaction.
import { isDeepStrictEqual } from 'node:util'
import type { AgentChange } from '../agents/agents.ts'
import { holdAgents } from '../agents/seniors.ts'
import { holdTakeUps } from '../agents/take-up-lock.ts'
import type { Db } from '../db/pool.ts'
import type { Agent } from '../kernel/agent.ts'
import type { Log } from '../kernel/log.ts'
import { aboutTask, type NotedTask } from '../kernel/operation.ts'
import type { Task } from '../kernel/task.ts'
import { closeCallsOfAgent } from '../tasks/close-questions.ts'
import { makeDue, watchIdle } from '../tasks/task-queue.ts'
import { askToEnd } from './ask-to-end.ts'
import { withdrawBeginAnew } from './begin-anew.ts'
import { allocationChanged, withdrawRequest } from './budget.ts'
import { tellDelegators } from './delegators.ts'
import { withdrawEscalations } from './escalate.ts'
import { logOnCommit } from './log-on-commit.ts'

export async function agentChanged(tx: Db, log: Log, agent: Agent, { before, isDeleted }: AgentChange): Promise<void> {
  // The lock waits for attempts that are just starting, and lets none start until this change is committed.
  if (isDeleted || (before && before.enabled !== agent.enabled)) await holdTakeUps(tx, agent.project_id)
  if (isDeleted) return handOver(tx, log, agent)
  if (agent.senior_id !== null && before?.senior_id !== agent.senior_id) await watchIdle(tx, [agent.id])
  if (before === null) return
  if (before.enabled && !agent.enabled) await tellDelegators(tx, log, [agent.id], 'was disabled')
  if (!before.enabled && agent.enabled) await makeDue(tx, agent.project_id, [agent.id])
  if (!isDeepStrictEqual(before.model, agent.model)) await tryOtherModel(tx, agent)
  if (before.token_allocation !== agent.token_allocation) await allocationChanged(tx, log, agent.id)
}

/** Runs that wait for the provider of the former model try the new one at once. */
async function tryOtherModel(tx: Db, { id, project_id }: Agent): Promise<void> {
  await tx.query(
    `update agent_runs set ready_at = coalesce(ready_at, muster.now()), signals = signals + 1
     where project_id = $2 and agent_id = $1 and waits_for = 'provider' and completed_at is null and owner is null`,
    [id, project_id],
  )
}

interface OpenTask extends NotedTask {
  times_stuck: number
  was: Task['status']
  ended_run_id: string | null
  last_run_id: string | null
  waits_for: string | null
}

/** The open tasks of a deleted agent go to its senior, or to people. Its running attempts are cancelled. */
async function handOver(tx: Db, log: Log, agent: Agent): Promise<void> {
  await tellDelegators(tx, log, [agent.id], 'was deleted')
  const { id, project_id: projectId, senior_id: seniorId } = agent
  const [heir = null] = seniorId === null ? [] : await holdAgents(tx, projectId, [seniorId])
  const { rows } = await tx.query<OpenTask>(
    `with open as (
       select id, status, attempt_run_id, waits_for from tasks
       where assigned_to = $1 and status in ('pending', 'in-progress', 'blocked') order by id for update
     )
     update tasks t set assigned_to = $2, attempts = 0, retry_at = null, last_run_id = coalesce(o.attempt_run_id, t.last_run_id),
       cleared_run_id = null,
       status = case when o.waits_for = 'subtasks' then t.status else 'pending' end,
       attempt_run_id = case when o.waits_for = 'subtasks' then t.attempt_run_id end,
       progress_note = 'Its agent was deleted.'
     from open o where t.id = o.id
     returning t.id, t.project_id, t.assigned_to, t.attempt_run_id, coalesce(t.root_task_id, t.id) as root_task_id,
       t.times_stuck, t.last_run_id, t.waits_for, o.status as was, case when t.attempt_run_id is null then o.attempt_run_id end as ended_run_id`,
    [id, heir],
  )
  for (const task of rows)
    logOnCommit(tx, log, 'task.handed_over', { ...aboutTask(task), agent_id: id }, { to_agent_id: heir })
  const runIds = rows.map((row) => row.ended_run_id)
  await askToEnd(tx, runIds)
  await wakeRuns(tx, agent)
  await closeCallsOfAgent(tx, agent)
  const blocked = rows.filter((row) => row.was === 'blocked')
  await withdrawEscalations(tx, log, blocked)
  if (heir === null) await stopAsking(tx, rows)
  await withdrawRequest(tx, log, id)
  await makeDue(tx, projectId, [heir])
}

/** Work that people do themselves does not wait for their word about an agent. */
async function stopAsking(tx: Db, tasks: readonly OpenTask[]): Promise<void> {
  const asking = tasks.filter((task) => task.waits_for === 'begin_anew')
  if (asking.length === 0) return
  await withdrawBeginAnew(tx, asking)
  await tx.query('update tasks set waits_for = null where id = any($1)', [asking.map((task) => task.id)])
}

/**
 * Runs that wait for a provider or for their flow runs are made ready: they find their agent deleted, end, and take the
 * flow runs down.
 */
async function wakeRuns(tx: Db, { id, project_id }: Agent): Promise<void> {
  await tx.query(
    `update agent_runs set ready_at = coalesce(ready_at, muster.now())
     where project_id = $2 and agent_id = $1 and status in ('running', 'paused')
       and (started_flow_run_id is not null or waits_for = 'provider') and completed_at is null and owner is null`,
    [id, project_id],
  )
}
