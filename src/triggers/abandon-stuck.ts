import type { Db, Pool, PreparedSql } from '../db/pool.ts'
import type { Journal } from '../journal/append.ts'
import { defaultSettings } from '../kernel/project.ts'
import { cancelRuns } from '../runs/cancel.ts'

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

/** Runs at work on an entry for longer than the project allows. The time they wait for people does not count. */
async function findStuck(db: Db): Promise<Stuck[]> {
  const { rows } = await db.query<Stuck>(FIND_STUCK)
  return rows
}

/** Gives stuck entries up and cancels their runs, together. Answers how many. */
export async function abandonStuck(deps: { pool: Pool; journal: Journal }): Promise<number> {
  const stuck = await findStuck(deps.pool)
  for (const { id, run_id, project_id } of stuck) {
    await cancelRuns(deps, project_id, [run_id], async (tx) => {
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
