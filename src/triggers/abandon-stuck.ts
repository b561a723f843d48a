import type { Db, Pool, PreparedSql } from '../db/pool.ts'
import type { Journal } from '../journal/journal.ts'
import { defaultSettings } from '../kernel/project.ts'
import { cancelRun } from '../runs/cancel.ts'

interface Stuck {
  id: string
  run_id: string
  project_id: string
}

const FIND_STUCK: PreparedSql = {
  name: 'entries_stuck',
  text: `select l.id, l.run_id, l.project_id from processing_log l join projects p on p.id = l.project_id
    where l.working_since is not null and l.working_since < muster.now() - interval '1 ms' *
      coalesce((p.settings->>'processing_stuck_after')::int, ${defaultSettings.processing_stuck_after})
    limit 100`,
}

/** Runs that work on an entry for longer than the project allows, without the time spent waiting for people. */
async function findStuck(db: Db): Promise<Stuck[]> {
  const { rows } = await db.query<Stuck>(FIND_STUCK)
  return rows
}

/** Gives up stuck entries and cancels their runs in one transaction. Returns the number of entries. */
export async function abandonStuck(deps: { pool: Pool; journal: Journal }): Promise<number> {
  const stuck = await findStuck(deps.pool)
  for (const { id, run_id, project_id } of stuck) {
    await cancelRun(deps, project_id, run_id, async (tx) => {
      await tx.query(
        `update processing_log set status = 'abandoned', completed_at = muster.now(), working_since = null,
           error_message = 'It took longer than processing_stuck_after allows and was given up.'
         where id = $1 and run_id = $2 and status = 'processing'`,
        [id, run_id],
      )
    })
  }
  return stuck.length
}
