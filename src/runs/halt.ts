import type { Db } from '../db/pool.ts'

/** Projects whose off switch is on. */
export async function haltedProjects(db: Db): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ id: string }>('select id from projects where halted_at is not null')
  return new Set(rows.map((row) => row.id))
}
