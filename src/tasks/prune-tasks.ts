import { BEGINNING, inBatches, type Position } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

const AT_ONCE = 500

/** SQL: whether people still have to decide something that this run asked, suggested or did. */
export const keepsTasks = (runId: string): string =>
  `exists (select from tasks k where k.run_id = ${runId} and k.completed_at is null)`

interface Found extends Position {
  stays: boolean
}

/**
 * Removes tasks that were resolved longer ago than their project keeps runs. A task stays as long as its run, which may
 * read the answer again, and while a task below it is open. Answers how many went.
 */
export async function pruneTasks(
  pool: Pool,
  { projectId, days }: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> {
  let total = 0
  let after: Position = BEGINNING
  await inBatches(pool, { lock: 'retention', signal }, async (tx) => {
    const { rows } = await tx.query<Found>(
      `select t.id, t.completed_at::text as at,
         exists (select from agent_runs r where r.id = t.run_id)
         or exists (select from tasks b where b.parent_task_id = t.id and b.completed_at is null) as stays
       from (
         select id, completed_at, run_id from tasks
         where project_id = $1 and completed_at < muster.now() - $2 * interval '1 day' and (completed_at, id) > ($3::timestamptz, $4::uuid)
         order by completed_at, id limit ${AT_ONCE} for update skip locked) t
       order by t.completed_at, t.id`,
      [projectId, days, after.at, after.id],
    )
    const last = rows.at(-1)
    if (!last) return false
    after = last
    const { rowCount } = await tx.query('delete from tasks where id = any($1::uuid[])', [
      rows.filter((row) => !row.stays).map((row) => row.id),
    ])
    total += rowCount ?? 0
    return rows.length === AT_ONCE
  })
  return total
}
