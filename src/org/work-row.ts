import { anyOf } from '../db/lists.ts'
import type { Db, PreparedSql } from '../db/pool.ts'
import type { Task } from '../kernel/task.ts'

/** A task with all the columns that the organisation needs; clients see fewer. */
export interface WorkTask {
  id: string
  project_id: string
  kind: Task['kind']
  title: string
  description: string
  priority: Task['priority']
  status: Task['status']
  assigned_to: string | null
  created_by: Task['created_by']
  parent_task_id: string | null
  result: unknown
  error_message: string | null
  metadata: Record<string, unknown>
  chain_depth: number
  attempt_run_id: string | null
  /** The newest run of the task, whichever agent made it. */
  last_run_id: string | null
  /** The last run after which a person allowed the work to begin anew. */
  cleared_run_id: string | null
  /** True if a person asked for the next attempt. */
  is_resumed: boolean
  attempts: number
  times_stuck: number
  waits_for: 'subtasks' | 'dependencies' | 'begin_anew' | null
  depends_on: string[]
  plan_depth: number
  is_decided: boolean
  advice: Advice[]
  /** The blocked task that this task asks for help with. */
  helps_task_id: string | null
  /** The agent that this task asks for tokens for. */
  helps_agent_id: string | null
  /** The first task of the tree; this task itself if there is none above it. */
  root_task_id: string
}

/** A server of an earlier release starts an attempt without writing `last_run_id`. */
export const newestRunOf = (task: Pick<WorkTask, 'attempt_run_id' | 'last_run_id'>): string | null =>
  task.attempt_run_id ?? task.last_run_id

/** An answer to an escalation, with its author. */
interface Advice {
  from: string
  text: string
}

export const WORK_COLUMNS = `id, project_id, kind, title, description, priority, status, assigned_to, created_by, parent_task_id,
  result, error_message, metadata, chain_depth, attempt_run_id, attempts, times_stuck, waits_for, depends_on, plan_depth,
  is_decided, advice, helps_task_id, helps_agent_id, coalesce(root_task_id, id) as root_task_id, last_run_id,
  cleared_run_id, is_resumed`

/** SQL that is true for an attempt that is running or waits for a worker. */
export const IS_AT_WORK = `task_id is not null and (status in ('queued', 'running') or (status = 'paused' and ready_at is not null))`

/** SQL that is true for an attempt whose outcome its task does not have yet. */
export const TO_SETTLE = `is_task_open and (status in ('completed', 'failed', 'cancelled')
  or (status = 'paused' and pause_reason in ('stopped', 'step_limit', 'timeout', 'context'))
  or (status = 'paused' and waits_for = 'allocation'))`

const lockSql = (name: string, wait: string): PreparedSql => ({
  name,
  text: `select ${WORK_COLUMNS} from tasks where id = ${anyOf(1)} order by id for update ${wait}`,
})
const LOCK = lockSql('tasks_lock', '')
const LOCK_FREE = lockSql('tasks_lock_free', 'skip locked')

/** Locks tasks in the order of their ids. With `passOver`, tasks that another transaction has locked are left out. */
export async function lockTasks(
  tx: Db,
  ids: readonly string[],
  { passOver = false } = {},
): Promise<Map<string, WorkTask>> {
  if (ids.length === 0) return new Map()
  const { rows } = await tx.query<WorkTask>(passOver ? LOCK_FREE : LOCK, [ids])
  return new Map(rows.map((row) => [row.id, row]))
}
