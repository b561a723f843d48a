import { anyOf } from '../db/lists.ts'
import type { Db, PreparedSql } from '../db/pool.ts'
import { didYouMean } from '../kernel/nearest.ts'

/** Agents' names by id. Deleted agents are included, so that their past actions still show an author. */
export async function nameAgents(
  db: Db,
  projectId: string,
  ids: readonly (string | null)[],
): Promise<Map<string, string>> {
  const asked = [...new Set(ids.filter((id) => id !== null))]
  if (asked.length === 0) return new Map()
  const { rows } = await db.query<{ id: string; name: string }>(
    `select id, name from agents where id = ${anyOf(1)} and project_id = $2`,
    [asked, projectId],
  )
  return new Map(rows.map(({ id, name }) => [id, name]))
}

const NEIGHBOURS = 250

// Most slips leave the beginning of a name as it is, so the name that was meant is near in their order. Of a project
// with a million agents only the neighbours are read.
const NEAR: PreparedSql = {
  name: 'agent_names_near',
  text: `(select name from agents where project_id = $1 and deleted_at is null and name >= $2
          order by name limit ${NEIGHBOURS})
         union all
         (select name from agents where project_id = $1 and deleted_at is null and name < $2
          order by name desc limit ${NEIGHBOURS})`,
}

/** ` Did you mean "writer"?`, of the agents of this project, or nothing. */
export async function guessAgent(db: Db, projectId: string, name: string): Promise<string> {
  const { rows } = await db.query<{ name: string }>(NEAR, [projectId, name])
  return didYouMean(
    name,
    rows.map((row) => row.name),
  )
}
