import { type RowOf, tellInstants } from '../db/instants.ts'
import { notFound } from '../kernel/errors.ts'
import type { Task } from '../kernel/task.ts'

export const TASK_COLUMNS = `id, kind, title, description, priority, status, assigned_to, created_by, parent_task_id, result,
  error_message, changes, reasoning, run_id, metadata, created_at, completed_at, progress_note,
  (select count(*)::int from tasks s where s.parent_task_id = tasks.id) as subtasks,
  (select count(*)::int from tasks s where s.parent_task_id = tasks.id and s.completed_at is not null) as subtasks_done`

export type TaskRow = RowOf<Omit<Task, 'progress'>> & {
  progress_note: string | null
  subtasks: number
  subtasks_done: number
}

export function toTask(row: TaskRow): Task {
  const { progress_note: note, subtasks, subtasks_done: done, ...task } = row
  const isWhole = subtasks === 0
  return {
    ...tellInstants(task),
    // A task without subtasks counts as one piece of work.
    progress: { done: isWhole ? Number(task.status === 'completed') : done, total: isWhole ? 1 : subtasks, note },
  }
}

export function onlyTask(rows: readonly TaskRow[]): Task {
  const row = rows[0]
  if (!row) throw notFound('task')
  return toTask(row)
}
