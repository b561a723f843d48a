import { type RowOf, tellInstants } from '../../db/instants.ts'
import { byId, findNewestOfEach, inEachProject, type NewestOfEach } from '../../db/newest-of-each.ts'
import type { Db } from '../../db/pool.ts'
import { oneLine } from '../../db/search-rows.ts'
import type { AlertOfHome } from '../../kernel/home.ts'

const OPEN = inEachProject('select id, created_at as at from flow_alerts where project_id = p.id and acked_at is null')

/** The alerts of many projects that nobody has seen. */
export const findOpenAlerts = (db: Db, projects: readonly string[], limit: number): Promise<NewestOfEach> =>
  findNewestOfEach(db, OPEN, { projects, limit })

export async function readOpenAlerts(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, AlertOfHome>> {
  const { rows } = await db.query<RowOf<AlertOfHome>>(
    `select a.id, a.flow_run_id, coalesce(${oneLine('a.suspected_cause')}, '') as suspected_cause, a.created_at,
       f.root->>'type' as pattern, s.name as flow_name
     from flow_alerts a join flow_runs f on f.id = a.flow_run_id left join flows s on s.id = f.flow_id
     where a.id = any($1::uuid[])`,
    [ids],
  )
  return byId(rows.map((row) => tellInstants(row)))
}
