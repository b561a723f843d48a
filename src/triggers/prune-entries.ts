import { type EndedRows, removeEnded } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

const ENTRIES: EndedRows = {
  table: 'processing_log',
  at: 'completed_at',
  carried: ['run_id'],
  stays: 'exists (select from agent_runs r where r.id = t.run_id)',
}

/**
 * Removes entries that ended longer ago than their project keeps runs, and returns their number. An entry is removed
 * with its run; a skipped entry has no run.
 */
export const pruneEntries = (
  pool: Pool,
  retention: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> => removeEnded(pool, ENTRIES, retention, signal)
