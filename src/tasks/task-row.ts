import { notFound } from '../kernel/errors.ts'
import type { Task } from '../kernel/task.ts'

export const TASK_COLUMNS = `id, kind, title, description, priority, status, assigned_to, created_by, parent_task_id, result,
  error_message, changes, reasoning, run_id, metadata, created_at, completed_at`

export type TaskRow = Omit<Task, 'created_at' | 'completed_at'> & { created_at: Date; completed_at: Date | null }

export function toTask(row: TaskRow): Task {
  return {
    ...row,
    created_at: row.created_at.toISOString(),
    completed_at: row.completed_at?.toISOString() ?? null,
  }
}

export function onlyTask(rows: readonly TaskRow[]): Task {
  const row = rows[0]
  if (!row) throw notFound('task')
  return toTask(row)
}
