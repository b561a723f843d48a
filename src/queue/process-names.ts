// The names of the functions and the tools that each process has. Work that needs a name goes to a process that has it.
import type { Db } from '../db/pool.ts'

/** The columns of `process_functions`, a table that is older than the names of tools. */
const COLUMNS = { functions: 'names', tools: 'tools' } as const
export type NameKind = keyof typeof COLUMNS

/** SQL for the processes that are alive: `w` and their names `p`. */
const ALIVE = `workers w join process_functions p on p.worker_id = w.id and w.lease_until > muster.now()`

/** Publishes names of the process, until it is forgotten. Publishes nothing for a process that was declared dead. */
export async function publishNames(db: Db, workerId: string, kind: NameKind, names: readonly string[]): Promise<void> {
  const { functions, tools } = COLUMNS
  const values = kind === 'functions' ? `$2::text[], null` : `'{}', $2::text[]`
  await db.query(
    `insert into process_functions (worker_id, ${functions}, ${tools}) select id, ${values} from workers where id = $1
     on conflict (worker_id) do update set ${COLUMNS[kind]} = excluded.${COLUMNS[kind]}`,
    [workerId, names],
  )
}

/** The wanted names that some live process has. */
export async function findNames(db: Db, kind: NameKind, wanted: readonly string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ name: string }>(
    `select distinct name from ${ALIVE}, unnest(p.${COLUMNS[kind]}) as name where name = any($1::text[])`,
    [wanted],
  )
  return new Set(rows.map((row) => row.name))
}

const MAX_NAMES = 1_000

/** The names that live processes have, for a guess at a name that was meant. */
export async function listNames(db: Db, kind: NameKind): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select distinct name from ${ALIVE}, unnest(p.${COLUMNS[kind]}) as name limit ${MAX_NAMES}`,
  )
  return rows.map((row) => row.name)
}

/**
 * SQL: some live process that works on runs has all tools of the array `needs`. A process that has not published its
 * tools may have any.
 */
export const somebodyHasTools = (needs: string): string => `exists (
  select from workers w left join process_functions p on p.worker_id = w.id
  where w.slots > 0 and w.lease_until > muster.now() and (p.tools is null or ${needs} <@ p.tools))`
