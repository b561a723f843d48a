// An agent that cannot go on asks its senior, or people. The task is made once: its id is computed from its cause.

import { holdAgents } from '../agents/seniors.ts'
import type { Db } from '../db/pool.ts'
import { cutText } from '../kernel/cut-text.ts'
import { idFrom } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { aboutTask } from '../kernel/operation.ts'
import { MAX_TITLE, type TaskPriority, type TaskStatus } from '../kernel/task.ts'
import { effectsParagraph } from '../tasks/made-calls-text.ts'
import { makeDue } from '../tasks/task-queue.ts'
import { askToEnd } from './ask-to-end.ts'
import { tellDelegators } from './delegators.ts'
import { logOnCommit } from './log-on-commit.ts'
import { callsOfWork } from './made-calls.ts'
import { sendMessages } from './messages.ts'
import { changeStatus } from './statuses.ts'
import type { WorkTask } from './work-row.ts'

export interface NewEscalation {
  id: string
  projectId: string
  /** The senior that gets the task; null for people. */
  to: string | null
  from: string
  title: string
  description: string
  priority: TaskPriority
  metadata: Readonly<Record<string, unknown>>
  /** The blocked task that needs help. */
  helpsTaskId?: string
  /** The agent that needs tokens. */
  helpsAgentId?: string
  chainDepth?: number
  /** The first task of the piece of work in which help is needed. */
  rootTaskId?: string
}

/** Makes the task unless it exists already. Returns true if the task was made now. */
export async function escalate(tx: Db, log: Log, escalation: NewEscalation): Promise<boolean> {
  // A senior may have been deleted at this moment; people get the task then.
  const [to = null] = escalation.to === null ? [] : await holdAgents(tx, escalation.projectId, [escalation.to])
  const { id, projectId, from, title, description, priority, metadata } = escalation
  const { chainDepth = 0, rootTaskId = null, helpsTaskId = null, helpsAgentId = null } = escalation
  const { rowCount } = await tx.query(
    `insert into tasks (id, project_id, kind, title, description, priority, assigned_to, created_by, metadata, chain_depth, is_decided,
       root_task_id, helps_task_id, helps_agent_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, true, $11, $12, $13) on conflict (id) do nothing`,
    [
      id,
      projectId,
      to === null ? 'escalation' : 'work',
      cutText(title, MAX_TITLE).toWellFormed(),
      description,
      priority,
      to,
      JSON.stringify({ type: 'agent', id: from }),
      JSON.stringify(metadata),
      chainDepth,
      rootTaskId,
      helpsTaskId,
      helpsAgentId,
    ],
  )
  if (rowCount !== 1) return false
  await makeDue(tx, projectId, [to])
  const about = { project_id: projectId, agent_id: from, task_id: id, correlation_id: rootTaskId ?? id }
  logOnCommit(tx, log, 'task.escalated', about, { to_agent_id: to, priority })
  return true
}

const stuckTaskId = (taskId: string, timesStuck: number): string => idFrom(`stuck ${taskId} ${timesStuck}`)

/** Called for a task that failed too often: it is blocked, its agent is stuck, and the next senior is asked. */
export async function getStuck(tx: Db, log: Log, task: WorkTask, error: string): Promise<void> {
  const agentId = task.assigned_to
  if (agentId === null) return
  const timesStuck = task.times_stuck + 1
  await tx.query(
    `update tasks set status = 'blocked', times_stuck = $2, error_message = $3, progress_note = 'Blocked: somebody must help.'
     where id = $1`,
    [task.id, timesStuck, error],
  )
  logOnCommit(tx, log, 'task.blocked', aboutTask(task), { times_stuck: timesStuck })
  const why = `it is blocked on "${task.title}".`
  const agent = await changeStatus(tx, log, { agentId, event: 'blocked', why, task })
  if (!agent) return
  await tellDelegators(tx, log, [agentId], 'is stuck')
  const to = await seniorAbove(tx, agentId, timesStuck)
  const effects = effectsParagraph(await callsOfWork(tx, task.id))
  const description = [
    `${agent.name} is blocked on the task "${task.title}".`,
    `The last error: ${error}`,
    ...(effects === ''
      ? []
      : [
          `${effects}\nThe next attempt continues after them. If it cannot, people are asked before an unsafe one is repeated.`,
        ]),
    'Complete this task with advice as the result, and the agent tries again; or reassign or cancel the blocked task.',
  ].join('\n\n')
  await escalate(tx, log, {
    id: stuckTaskId(task.id, timesStuck),
    projectId: task.project_id,
    to,
    from: agentId,
    title: `Agent ${agent.name} is stuck`,
    description,
    priority: 'high',
    metadata: { blockedTaskId: task.id, blockedAgentId: agentId },
    helpsTaskId: task.id,
    chainDepth: task.chain_depth,
    rootTaskId: task.root_task_id,
  })
  if (to === null) return
  const body = `${agent.name} is stuck on "${task.title}": ${error}`
  const key = `stuck ${task.id} ${timesStuck}`
  const { project_id: projectId, id: taskId } = task
  await sendMessages(tx, [{ projectId, from: agentId, to, kind: 'escalation', body, taskId, key }], log)
}

/** The senior this many levels above the agent; null if the organisation has fewer levels. */
async function seniorAbove(tx: Db, agentId: string, levels: number): Promise<string | null> {
  const { rows } = await tx.query<{ id: string }>(
    `with recursive above (id, senior_id, level) as (
       select id, senior_id, 0 from agents where id = $1
       union all
       select a.id, a.senior_id, level + 1 from agents a join above on a.id = above.senior_id
       where a.deleted_at is null and level < $2
     )
     select id from above where level = $2`,
    [agentId, levels],
  )
  return rows[0]?.id ?? null
}

/** Frees a stuck agent, because its escalation was answered or its blocked task was changed. */
export async function free(tx: Db, log: Log, agentId: string, why: string, task?: FreedTask): Promise<void> {
  const agent = await changeStatus(tx, log, { agentId, event: 'freed', why, task })
  if (agent) await makeDue(tx, agent.project_id, [agentId])
}

type FreedTask = Pick<WorkTask, 'id' | 'root_task_id'>
type Stuck = Pick<WorkTask, 'id' | 'times_stuck'>

/** Cancels the escalations of tasks that are no longer blocked. The run `byRun` that asks for this goes on. */
export function withdrawEscalations(
  tx: Db,
  log: Log,
  tasks: readonly Stuck[],
  byRun: string | null = null,
): Promise<void> {
  const taskIds = tasks.map((task) => stuckTaskId(task.id, task.times_stuck))
  return closeRequests(tx, log, taskIds, { status: 'cancelled', result: null, byRun })
}

interface Closing {
  status: 'completed' | 'cancelled'
  result: string | null
  /** The run that asks for this, if it is a run. It goes on, and so do the runs that wait for it. */
  byRun: string | null
}

interface ClosedRequest extends FreedTask, Stuck {
  assigned_to: string | null
  attempt_run_id: string | null
  was: TaskStatus
}

/**
 * Closes those of these tasks that are open: each asks for help that is no longer needed. The runs that work on them are
 * cancelled. An agent that is stuck on one of them is freed, and its own escalation is closed, too.
 */
export async function closeRequests(
  tx: Db,
  log: Log,
  taskIds: readonly string[],
  { status, result, byRun }: Closing,
): Promise<void> {
  if (taskIds.length === 0) return
  const { rows } = await tx.query<ClosedRequest>(
    `with open as (
       select id, status from tasks where id = any($1) and status in ('pending', 'in-progress', 'blocked') order by id for update
     )
     update tasks t set status = $2, completed_at = muster.now(), result = coalesce(to_jsonb($3::text), t.result),
       waits_for = null, retry_at = null, progress_note = null
     from open where t.id = open.id
     returning t.id, t.assigned_to, t.attempt_run_id, t.times_stuck, coalesce(t.root_task_id, t.id) as root_task_id, open.status as was`,
    [taskIds, status, result],
  )
  if (rows.length === 0) return
  const spared = byRun === null ? [] : [byRun, ...(await runsAbove(tx, byRun))]
  const runIds = rows.flatMap(({ attempt_run_id: id }) => (id === null || spared.includes(id) ? [] : [id]))
  await askToEnd(tx, runIds)
  const blocked = rows.filter(({ was }) => was === 'blocked')
  if (blocked.length === 0) return
  await withdrawEscalations(tx, log, blocked, byRun)
  for (const task of blocked) {
    if (task.assigned_to !== null) await free(tx, log, task.assigned_to, `its blocked task is ${status}.`, task)
  }
}

async function runsAbove(tx: Db, runId: string): Promise<string[]> {
  const { rows } = await tx.query<{ ancestors: string[] }>('select ancestors from agent_runs where id = $1', [runId])
  return rows[0]?.ancestors ?? []
}
