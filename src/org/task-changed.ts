// After people or a senior changed a task, its run, its agent and related tasks are changed in the same transaction.
import type { Db } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import { aboutTask, type NotedTask } from '../kernel/operation.ts'
import { isResolved, type Task } from '../kernel/task.ts'
import { makeDue, noteFreed } from '../tasks/task-queue.ts'
import { askToEnd } from './ask-to-end.ts'
import { withdrawBeginAnew } from './begin-anew.ts'
import { free, withdrawEscalations } from './escalate.ts'
import { logOnCommit } from './log-on-commit.ts'
import { taskResolved } from './resolved.ts'
import { lockTasks } from './work-row.ts'

type Before = Pick<Task, 'status' | 'assigned_to'>

/** Called in the transaction that changed the task. Runs that are no longer wanted are cancelled. */
export async function taskChanged(
  tx: Db,
  log: Log,
  before: Before,
  after: Task,
  byRun: string | null = null,
): Promise<void> {
  const task = (await lockTasks(tx, [after.id])).get(after.id)
  if (task?.kind !== 'work') {
    if (task && isResolved(task.status) && !isResolved(before.status)) await taskResolved(tx, log, task)
    return
  }
  const isReassigned = before.assigned_to !== task.assigned_to
  const isClosed = isResolved(task.status) && !isResolved(before.status)
  const isReopened = task.status === 'pending' && before.status !== 'pending'
  if (!isReassigned && !isClosed && !isReopened) {
    // The task's place in the queue may have changed.
    await makeDue(tx, task.project_id, [task.assigned_to])
    return
  }
  if (task.attempt_run_id !== null) await askToEnd(tx, [task.attempt_run_id])
  if (task.waits_for === 'begin_anew') await withdrawBeginAnew(tx, [task])
  if (before.status === 'blocked' && before.assigned_to !== null) {
    await withdrawEscalations(tx, log, [task], byRun)
    const happened = isClosed ? `is ${task.status}` : isReassigned ? 'was given to another' : 'is tried again'
    await free(tx, log, before.assigned_to, `its blocked task ${happened}.`, task)
  }
  if (isClosed) {
    logOnCommit(tx, log, task.status === 'completed' ? 'task.completed' : 'task.cancelled', aboutTask(task))
    await tx.query('update tasks set waits_for = null, retry_at = null, progress_note = null where id = $1', [task.id])
    await cancelSubtasks(tx, log, task.id, byRun)
    await taskResolved(tx, log, task)
  } else if (!isResolved(task.status)) {
    // The same assignee continues its last attempt; another one begins anew, which a person must allow once more.
    logOnCommit(tx, log, before.status === 'blocked' ? 'task.freed' : 'task.handed_back', aboutTask(task))
    await tx.query(
      // A task that depends on others waits for them, whoever its assignee is.
      `update tasks set status = 'pending', attempts = 0, retry_at = null, progress_note = null,
         last_run_id = coalesce(attempt_run_id, last_run_id), attempt_run_id = null, is_resumed = $2,
         cleared_run_id = case when not $3 then cleared_run_id end,
         waits_for = case when waits_for = 'dependencies' then waits_for end where id = $1`,
      [task.id, byRun === null && !isReassigned, isReassigned],
    )
    await cancelSubtasks(tx, log, task.id, byRun)
  }
  await makeDue(tx, task.project_id, [before.assigned_to, task.assigned_to])
}

interface Cancelled extends NotedTask {
  last_run_id: string | null
  times_stuck: number
  was: Task['status']
}

/** Cancels the subtasks of a task that is closed or begins anew, and all subtasks below them. */
async function cancelSubtasks(tx: Db, log: Log, parentId: string, byRun: string | null): Promise<void> {
  const { rows } = await tx.query<Cancelled>(
    `with recursive below (id) as (
       select id from tasks where parent_task_id = $1 union select t.id from tasks t join below on t.parent_task_id = below.id
     ), open as (
       select id, status from tasks where id in (select id from below) and status in ('pending', 'in-progress', 'blocked')
       order by id for update
     )
     update tasks t set status = 'cancelled', waits_for = null, retry_at = null, completed_at = muster.now(), progress_note = null
     from open where t.id = open.id
     returning t.id, t.project_id, t.assigned_to, t.attempt_run_id, t.last_run_id, t.times_stuck, coalesce(t.root_task_id, t.id) as root_task_id,
       open.status as was`,
    [parentId],
  )
  if (rows.length === 0) return
  for (const task of rows) logOnCommit(tx, log, 'task.cancelled', aboutTask(task))
  const runIds = rows.map((task) => task.attempt_run_id)
  await askToEnd(tx, runIds)
  await withdrawBeginAnew(tx, rows)
  const blocked = rows.filter((task) => task.was === 'blocked')
  await withdrawEscalations(tx, log, blocked, byRun)
  for (const task of blocked) {
    if (task.assigned_to !== null) await free(tx, log, task.assigned_to, 'its blocked task was cancelled.', task)
  }
  await noteFreed(tx, [...new Set(rows.flatMap((task) => task.assigned_to ?? []))])
}
