import type { Db } from '../db/pool.ts'

const AT_ONCE = 500

/**
 * Removes runs that ended longer ago than their project keeps them: whole runs, with their journals. A run stays while
 * one that is kept goes on from it, or while a sub-run of it is kept. Answers how many went.
 */
export async function pruneRuns(db: Db): Promise<number> {
  let total = 0
  for (;;) {
    const { rowCount } = await db.query(
      `with old as (
         select r.id from agent_runs r join projects p on p.id = r.project_id
         where (p.settings->>'run_retention_days') is not null
           and r.completed_at < muster.now() - (p.settings->>'run_retention_days')::float8 * interval '1 day'
       )
       delete from agent_runs where id in (
         select o.id from old o
         where not exists (select from agent_runs n where n.base_run_id = o.id)
           and not exists (select from agent_runs c where c.parent_run_id = o.id)
         limit ${AT_ONCE})`,
    )
    total += rowCount ?? 0
    if ((rowCount ?? 0) === 0) return total
  }
}
