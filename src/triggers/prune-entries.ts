import { type EndedRows, removeEnded } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

const ENTRIES: EndedRows = {
  table: 'processing_log',
  at: 'completed_at',
  carried: ['run_id'],
  stays: 'exists (select from agent_runs r where r.id = t.run_id)',
}

/**
 * Removes entries of the processing log that ended longer ago than their project keeps runs. An entry stays as long as
 * its run, and goes with it; those that were skipped have none. Answers how many went.
 */
export const pruneEntries = (
  pool: Pool,
  retention: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> => removeEnded(pool, ENTRIES, retention, signal)
