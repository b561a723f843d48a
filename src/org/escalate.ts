// An agent that cannot go on asks its senior; where there is none, people are asked. Such a task is made once: its id
// follows from its cause.
import { holdAgents } from '../agents/seniors.ts'
import type { Db } from '../db/pool.ts'
import { idFrom } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { aboutTask } from '../kernel/operation.ts'
import { MAX_TITLE, type TaskPriority } from '../kernel/task.ts'
import { makeDue } from '../tasks/task-queue.ts'
import { askToEnd } from './ask-to-end.ts'
import { tellDelegators } from './delegators.ts'
import { sendMessages } from './messages.ts'
import { changeStatus } from './statuses.ts'
import { tell } from './tell.ts'
import type { WorkTask } from './work-row.ts'

export interface NewEscalation {
  id: string
  projectId: string
  /** The senior who shall see to it; null for people. */
  to: string | null
  from: string
  title: string
  description: string
  priority: TaskPriority
  metadata: Readonly<Record<string, unknown>>
  /** The blocked task that it is about. */
  helpsTaskId?: string
  /** The agent that it asks for tokens for. */
  helpsAgentId?: string
  chainDepth?: number
  /** The first task of the piece of work in which help is needed. */
  rootTaskId?: string
}

/** Makes the task unless it was made before. Returns whether it was made now. */
export async function escalate(tx: Db, log: Log, escalation: NewEscalation): Promise<boolean> {
  // A senior that was deleted at this moment is none any more.
  const [to = null] = escalation.to === null ? [] : await holdAgents(tx, escalation.projectId, [escalation.to])
  const {
    id,
    projectId,
    from,
    title,
    description,
    priority,
    metadata,
    chainDepth = 0,
    rootTaskId,
    helpsTaskId,
    helpsAgentId,
  } = escalation
  const { rowCount } = await tx.query(
    `insert into tasks (id, project_id, kind, title, description, priority, assigned_to, created_by, metadata, chain_depth, is_decided,
       root_task_id, helps_task_id, helps_agent_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, true, $11, $12, $13) on conflict (id) do nothing`,
    [
      id,
      projectId,
      to === null ? 'escalation' : 'work',
      title.slice(0, MAX_TITLE).toWellFormed(),
      description,
      priority,
      to,
      JSON.stringify({ type: 'agent', id: from }),
      JSON.stringify(metadata),
      chainDepth,
      rootTaskId ?? null,
      helpsTaskId ?? null,
      helpsAgentId ?? null,
    ],
  )
  if (rowCount !== 1) return false
  await makeDue(tx, projectId, [to])
  const about = { project_id: projectId, agent_id: from, task_id: id, correlation_id: rootTaskId ?? id }
  tell(tx, log, 'task.escalated', about, { to_agent_id: to, priority })
  return true
}

export const stuckTaskId = (taskId: string, timesStuck: number): string => idFrom(`stuck ${taskId} ${timesStuck}`)

/** The task has failed too often: it is blocked, its agent is stuck, and a senior is asked, each time one higher. */
export async function getStuck(tx: Db, log: Log, task: WorkTask, error: string): Promise<void> {
  const agentId = task.assigned_to
  if (agentId === null) return
  const timesStuck = task.times_stuck + 1
  await tx.query(
    `update tasks set status = 'blocked', times_stuck = $2, error_message = $3, progress_note = 'Blocked: somebody must help.'
     where id = $1`,
    [task.id, timesStuck, error],
  )
  tell(tx, log, 'task.blocked', aboutTask(task), { times_stuck: timesStuck })
  const why = `it is blocked on "${task.title}".`
  const agent = await changeStatus(tx, log, { agentId, event: 'blocked', why, task })
  if (!agent) return
  await tellDelegators(tx, log, [agentId], 'is stuck')
  const to = await seniorAbove(tx, agentId, timesStuck)
  const description = [
    `${agent.name} is blocked on the task "${task.title}".`,
    `The last error: ${error}`,
    'Complete this task with the help it needs as the result, and it tries again; or reassign or cancel the blocked task.',
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

/** The senior so many levels above the agent; null where the organisation is not that high. */
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

/** The agent is freed: its escalation is answered, or somebody took the blocked task off its hands. */
export async function free(tx: Db, log: Log, agentId: string, why: string, task?: FreedTask): Promise<void> {
  const agent = await changeStatus(tx, log, { agentId, event: 'freed', why, task })
  if (agent) await makeDue(tx, agent.project_id, [agentId])
}

type FreedTask = Pick<WorkTask, 'id' | 'root_task_id'>
type Stuck = Pick<WorkTask, 'id' | 'times_stuck'>

/** The escalations of blocked tasks are not needed any more. The run that says so goes on. */
export const withdrawEscalations = (tx: Db, tasks: readonly Stuck[], byRun: string | null = null): Promise<void> =>
  withdraw(
    tx,
    tasks.map((task) => stuckTaskId(task.id, task.times_stuck)),
    byRun,
  )

/** Cancels open tasks, and ends the runs of those that work on them, but for the run that asks for it. */
export async function withdraw(tx: Db, taskIds: readonly string[], byRun: string | null = null): Promise<void> {
  if (taskIds.length === 0) return
  const { rows } = await tx.query<{ attempt_run_id: string | null }>(
    `update tasks set status = 'cancelled', completed_at = muster.now(), progress_note = null
     where id = any($1) and status in ('pending', 'in-progress') returning attempt_run_id`,
    [taskIds],
  )
  await askToEnd(
    tx,
    rows.map((row) => row.attempt_run_id).filter((runId) => runId !== byRun),
  )
}
