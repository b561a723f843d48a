import { type EndedRows, removeEnded } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

/**
 * SQL that is true while a question or suggestion of this run, or the task that it works on, is open. The next attempt at
 * an open task continues the last run, or names its calls.
 */
export const keepsTasks = (runId: string): string =>
  `(exists (select from tasks k where k.run_id = ${runId} and k.completed_at is null)
    or exists (select from tasks k where k.attempt_run_id = ${runId} and k.completed_at is null)
    or exists (select from tasks k where k.last_run_id = ${runId} and k.completed_at is null))`

const TASKS: EndedRows = {
  table: 'tasks',
  at: 'completed_at',
  carried: ['run_id', 'parent_task_id'],
  stays: `(exists (select from agent_runs r where r.id = t.run_id)
    or exists (select from tasks b where b.parent_task_id = t.id and b.completed_at is null)
    or exists (select from tasks p where p.id = t.parent_task_id and p.completed_at is null))`,
}

/**
 * Removes tasks that were resolved longer ago than their project keeps runs, and returns their number. A task stays as
 * long as its run, which may read the answer again, as long as a subtask is open, and as long as its parent is open.
 */
export const pruneTasks = (
  pool: Pool,
  retention: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> => removeEnded(pool, TASKS, retention, signal)
