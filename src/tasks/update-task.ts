import { recordAudit } from '../audit/record.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { conflict } from '../kernel/errors.ts'
import type { Actor } from '../kernel/principal.ts'
import { isResolved, patchProblem, type Task, type TaskPatch } from '../kernel/task.ts'
import { requireAssignee } from './assignee.ts'
import { isBeginAnewTask, requireDecisionPatch } from './begin-anew-tasks.ts'
import { isOutcomeTask, requireOutcomePatch } from './outcome-tasks.ts'
import { isOverAbove } from './over-above.ts'
import { onlyTask, TASK_COLUMNS, type TaskRow } from './task-row.ts'
import { getTask } from './tasks.ts'

export interface UpdateOptions {
  actor: Actor
  /** Called in the transaction that changes the task: the consequences are committed with the change or not at all. */
  onChanged: (tx: Db, before: Task, after: Task) => Promise<void>
  /** Called before a task about a call is locked: a resume locks the run before the task, so this does too. */
  lockRun: (tx: Db, runId: string) => Promise<void>
}

/** Absent fields keep their values; metadata is replaced as a whole. A task is resolved once. */
export async function updateTask(
  pool: Pool,
  projectId: string,
  taskId: string,
  patch: TaskPatch,
  options: UpdateOptions,
): Promise<Task> {
  return inTransaction(pool, (tx) => updateTaskIn(tx, projectId, taskId, patch, options))
}

export async function updateTaskIn(
  tx: Db,
  projectId: string,
  taskId: string,
  patch: TaskPatch,
  { actor, onChanged, lockRun }: UpdateOptions,
): Promise<Task> {
  const read = await getTask(tx, projectId, taskId)
  if (isOutcomeTask(read)) await lockRun(tx, read.run_id)
  if (isBeginAnewTask(read) && read.run_id !== null) await lockRun(tx, read.run_id)
  const before = await lockTask(tx, projectId, taskId)
  const changed = Object.keys(patch)
  if (changed.length === 0) return before
  const problem = patchProblem(before, patch)
  if (problem) throw conflict(problem)
  if (isOutcomeTask(before)) requireOutcomePatch(before, patch)
  if (isBeginAnewTask(before)) requireDecisionPatch(before, patch)
  if (patch.status === 'completed') await requireWaitingRun(tx, before)
  if (patch.assigned_to) await requireAssignee(tx, projectId, patch.assigned_to)
  const task = await write(tx, merged(before, patch))
  await recordAudit(tx, {
    action: 'task.update',
    actor,
    projectId,
    targetType: 'task',
    targetId: taskId,
    details: { changed, ...(patch.status ? { status: patch.status } : {}) },
  })
  await onChanged(tx, before, task)
  return getTask(tx, projectId, taskId)
}

/** An answer to a run whose work was called off would continue the run. */
async function requireWaitingRun(tx: Db, task: Task): Promise<void> {
  if (task.kind !== 'escalation' || task.run_id === null || isOutcomeTask(task)) return
  if (await isOverAbove(tx, task.run_id))
    throw conflict('The work above the run that asks was cancelled or has ended, so the run waits for no answer.')
}

function merged(before: Task, patch: TaskPatch): Task {
  return {
    ...before,
    status: patch.status ?? before.status,
    result: patch.result === undefined ? before.result : patch.result,
    assigned_to: patch.assigned_to === undefined ? before.assigned_to : patch.assigned_to,
    priority: patch.priority ?? before.priority,
    title: patch.title ?? before.title,
    description: patch.description ?? before.description,
    metadata: patch.metadata ?? before.metadata,
  }
}

async function write(tx: Db, task: Task): Promise<Task> {
  const isOpen = !isResolved(task.status)
  const { rows } = await tx.query<TaskRow>(
    `update tasks set status = $2, result = $3, assigned_to = $4, priority = $5, title = $6, description = $7,
       metadata = $8, error_message = case when $2 = 'pending' then null else error_message end,
       completed_at = case when $9 then null else coalesce(completed_at, muster.now()) end
     where id = $1 returning ${TASK_COLUMNS}`,
    [
      task.id,
      task.status,
      task.result === null ? null : JSON.stringify(task.result),
      task.assigned_to,
      task.priority,
      task.title,
      task.description,
      JSON.stringify(task.metadata),
      isOpen,
    ],
  )
  return onlyTask(rows)
}

async function lockTask(tx: Db, projectId: string, taskId: string): Promise<Task> {
  const { rows } = await tx.query<TaskRow>(
    `select ${TASK_COLUMNS} from tasks where id = $1 and project_id = $2 for update`,
    [taskId, projectId],
  )
  return onlyTask(rows)
}
