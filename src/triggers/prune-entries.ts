import { BEGINNING, inBatches, type Position } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

const AT_ONCE = 500

interface Found extends Position {
  stays: boolean
}

/**
 * Removes entries of the processing log that ended longer ago than their project keeps runs. An entry stays as long as
 * its run, and goes with it; those that were skipped have none. Answers how many went.
 */
export async function pruneEntries(
  pool: Pool,
  { projectId, days }: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> {
  let total = 0
  let after: Position = BEGINNING
  await inBatches(pool, { lock: 'retention', signal }, async (tx) => {
    const { rows } = await tx.query<Found>(
      `select l.id, l.completed_at::text as at, exists (select from agent_runs r where r.id = l.run_id) as stays
       from (
         select id, completed_at, run_id from processing_log
         where project_id = $1 and completed_at < muster.now() - $2 * interval '1 day'
           and (completed_at, id) > ($3::timestamptz, $4::uuid)
         order by completed_at, id limit ${AT_ONCE} for update skip locked) l
       order by l.completed_at, l.id`,
      [projectId, days, after.at, after.id],
    )
    const last = rows.at(-1)
    if (!last) return false
    after = last
    const { rowCount } = await tx.query('delete from processing_log where id = any($1::uuid[])', [
      rows.filter((row) => !row.stays).map((row) => row.id),
    ])
    total += rowCount ?? 0
    return rows.length === AT_ONCE
  })
  return total
}
