import { inBatches } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

const EVALS_AT_ONCE = 100
/** Cases and results are deleted with their eval, so their number bounds a batch, too. */
const RESULTS_AT_ONCE = 20_000

const DELETE = `
  with oldest as (
    select id, completed_at, total from evals
    where project_id = $1 and not is_open and completed_at < muster.now() - $2 * interval '1 day'
    order by completed_at, id limit ${EVALS_AT_ONCE} for update skip locked
  ), few as (
    select id from (select id, sum(total) over (order by completed_at, id) - total as before from oldest) o
    where before < ${RESULTS_AT_ONCE}
  )
  delete from evals where id in (select id from few)`

/**
 * Removes evals that ended longer ago than their project keeps runs, the oldest first, because they hold tasks and
 * answers of runs. An eval stays while its runs are open. Returns the number of removed evals.
 */
export async function pruneEvals(
  pool: Pool,
  { projectId, days }: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> {
  let total = 0
  await inBatches(pool, { lock: 'retention', signal }, async (tx) => {
    const { rowCount } = await tx.query(DELETE, [projectId, days])
    total += rowCount ?? 0
    return rowCount !== 0
  })
  return total
}
