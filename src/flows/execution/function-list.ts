import type { Pool } from '../../db/pool.ts'

/** Publishes the names of the process's functions, under each name that the process has had. */
export function createFunctionList(
  pool: Pool,
  functions: ReadonlyMap<string, unknown>,
): (ownerId: string) => Promise<void> {
  let publishedAs: string | null = null
  return async (ownerId) => {
    if (ownerId === publishedAs) return
    await pool.query(
      `insert into process_functions (worker_id, names) select id, $2 from workers where id = $1
       on conflict (worker_id) do update set names = excluded.names`,
      [ownerId, [...functions.keys()]],
    )
    publishedAs = ownerId
  }
}
