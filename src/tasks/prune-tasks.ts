import { removeEnded } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

/** SQL: whether people still have to decide something that this run asked, suggested or did. */
export const keepsTasks = (runId: string): string =>
  `exists (select from tasks k where k.run_id = ${runId} and k.completed_at is null)`

const STAYS = `(exists (select from agent_runs r where r.id = t.run_id)
  or exists (select from tasks b where b.parent_task_id = t.id and b.completed_at is null))`

/**
 * Removes tasks that were resolved longer ago than their project keeps runs. A task stays as long as its run, which may
 * read the answer again, and while a task below it is open. Answers how many went.
 */
export const pruneTasks = (
  pool: Pool,
  retention: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> => removeEnded(pool, { table: 'tasks', stays: STAYS }, retention, signal)
