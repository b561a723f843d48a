import type { Db, Pool, PreparedSql } from '../db/pool.ts'
import type { Journal } from '../journal/journal.ts'
import { defaultSettings } from '../kernel/project.ts'
import { cancelRun } from '../runs/cancel.ts'

interface Candidate {
  id: string
  run_id: string
  project_id: string
  /** As text, because a Date has no microseconds. */
  working_since: string
  stuck_after: number
}

const FIND_CANDIDATES: PreparedSql = {
  name: 'entries_stuck',
  text: `select l.id, l.run_id, l.project_id, l.working_since::text as working_since, s.stuck_after
    from processing_log l join projects p on p.id = l.project_id
    cross join lateral (select coalesce((p.settings->>'processing_stuck_after')::int,
      ${defaultSettings.processing_stuck_after}) as stuck_after) s
    where l.working_since is not null and l.working_since < muster.now() - interval '1 ms' * s.stuck_after
    limit 100`,
}

/**
 * Gives up entries whose runs, or runs below these, have worked for longer than the project allows, and cancels the runs
 * in the same transaction. Time in which all of them wait is not counted. Returns the number of entries.
 */
export async function abandonStuck(deps: { pool: Pool; journal: Journal }): Promise<number> {
  const { rows: candidates } = await deps.pool.query<Candidate>(FIND_CANDIDATES)
  let count = 0
  for (const candidate of candidates) {
    if (!(await isStuck(deps.pool, candidate))) continue
    const { id, run_id, project_id } = candidate
    await cancelRun(deps, project_id, run_id, async (tx) => {
      await tx.query(
        `update processing_log set status = 'abandoned', completed_at = muster.now(), working_since = null,
           error_message = 'It took longer than processing_stuck_after allows and was given up.'
         where id = $1 and run_id = $2 and status = 'processing'`,
        [id, run_id],
      )
    })
    count++
  }
  return count
}

/**
 * The time that was only waited is taken off the entry, so that each entry is looked at once in `stuck_after` and not
 * with every round.
 */
async function isStuck(db: Db, { id, run_id, working_since: since, stuck_after: mostMs }: Candidate): Promise<boolean> {
  const { rows } = await db.query<{ ms: number }>('select ms from muster.work_of_runs($1, $2, true)', [run_id, since])
  const workedMs = rows[0]?.ms ?? 0
  if (workedMs > mostMs) return true
  await db.query(
    `update processing_log set working_since = muster.now() - interval '1 ms' * $3::float8
     where id = $1 and working_since = $2`,
    [id, since, workedMs],
  )
  return false
}
