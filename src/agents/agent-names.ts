import { anyOf } from '../db/lists.ts'
import type { Db } from '../db/pool.ts'

/** The names by id, those of deleted agents too: what they did keeps its author. */
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
