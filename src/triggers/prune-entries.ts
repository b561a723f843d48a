import { removeEnded } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

const STAYS = 'exists (select from agent_runs r where r.id = t.run_id)'

/**
 * Removes entries of the processing log that ended longer ago than their project keeps runs. An entry stays as long as
 * its run, and goes with it; those that were skipped have none. Answers how many went.
 */
export const pruneEntries = (
  pool: Pool,
  retention: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> => removeEnded(pool, { table: 'processing_log', stays: STAYS }, retention, signal)
