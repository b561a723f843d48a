import { type Position, removeOldest } from '../../db/in-batches.ts'
import type { Db, Pool } from '../../db/pool.ts'

/** All these tables have the project's id and no id of their own. */
export const CHECKPOINT_TABLES = ['supervisor_writes', 'supervisor_channels', 'supervisor_checkpoints'] as const

const CHECKPOINTS_AT_ONCE = 200

/** Removes these threads whole. Returns the number of removed checkpoints. */
export async function removeThreads(db: Db, projectId: string, threadIds: readonly string[]): Promise<number> {
  if (threadIds.length === 0) return 0
  const { rowCount } = await db.query(
    `with writes as (delete from supervisor_writes where project_id = $1 and thread_id = any($2::text[])),
       channels as (delete from supervisor_channels where project_id = $1 and thread_id = any($2::text[]))
     delete from supervisor_checkpoints where project_id = $1 and thread_id = any($2::text[])`,
    [projectId, threadIds],
  )
  return rowCount ?? 0
}

/**
 * Removes threads whose last checkpoint is older than their project keeps runs. The thread of a run stays as long as
 * the run. Returns the number of removed checkpoints.
 */
export async function pruneCheckpoints(
  pool: Pool,
  { projectId, days }: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> {
  return removeOldest(pool, signal, async (tx, after) => {
    const values = [projectId, days, after.at, after.id]
    const { rows } = await tx.query<Position & { thread_id: string; stays: boolean }>(OLDEST, values)
    const gone = new Set(rows.filter((row) => !row.stays).map((row) => row.thread_id))
    const removed = await removeThreads(tx, projectId, [...gone])
    return { last: rows.at(-1), removed, isMore: rows.length === CHECKPOINTS_AT_ONCE }
  })
}

const OLDEST = `
  select c.created_at::text as at, c.checkpoint_id as id, c.thread_id,
    exists (select from agent_runs r where r.id = case when c.thread_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
      then c.thread_id::uuid end)
    or exists (select from supervisor_checkpoints y where y.project_id = $1 and y.thread_id = c.thread_id
      and y.created_at >= muster.now() - $2 * interval '1 day') as stays
  from (
    select * from supervisor_checkpoints
    where project_id = $1 and created_at < muster.now() - $2 * interval '1 day'
      and (created_at, checkpoint_id) > ($3::timestamptz, $4::text)
    order by created_at, checkpoint_id limit ${CHECKPOINTS_AT_ONCE}) c
  order by c.created_at, c.checkpoint_id`

/** Removes up to this many rows of each table, for a deleted project. Returns the number of removed rows. */
export async function removeCheckpointsOf(tx: Db, projectId: string, atOnce: number): Promise<number> {
  // If one project has most of a table, a sequential scan would read the deleted rows again in every batch.
  await tx.query('set local enable_seqscan = off')
  let total = 0
  for (const table of CHECKPOINT_TABLES) {
    // A row that is locked by another transaction is left for the next round: waiting for it could be a deadlock.
    const { rowCount } = await tx.query(
      `delete from ${table} where ctid = any (array(
         select ctid from ${table} where project_id = $1 limit $2 for update skip locked))`,
      [projectId, atOnce],
    )
    total += rowCount ?? 0
  }
  return total
}
