import type { Db } from '../db/pool.ts'
import { isId } from '../kernel/id.ts'
import type { KnownNames } from './validate.ts'

/** The agents and functions that a flow names and that exist: asked once for all of them. */
export async function knownNames(
  db: Db,
  projectId: string,
  root: unknown,
  functions: { has(name: string): boolean },
): Promise<KnownNames> {
  const named = [...namesUnder(root, ['agent', 'queen', 'workers'])]
  const agents = named.length === 0 ? new Set<string>() : await findAgents(db, projectId, named)
  const wanted = [...namesUnder(root, functionKeys)].filter((name) => !functions.has(name))
  const elsewhere = wanted.length === 0 ? new Set<string>() : await findFunctions(db, wanted)
  return {
    isAgent: (name) => agents.has(name) || (isId(name) && agents.has(name.toLowerCase())),
    isFunction: (name) => functions.has(name) || elsewhere.has(name),
  }
}

const functionKeys = [
  ...['function', 'map', 'reduce', 'partition', 'until', 'aggregate', 'should_split', 'split', 'solve', 'join'],
  ...['items', 'source', 'problem', 'stages'],
]

/** Functions that other processes know. */
async function findFunctions(db: Db, wanted: readonly string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ name: string }>(
    `select distinct name from process_functions p join workers w on w.id = p.worker_id, unnest(p.names) as name
     where w.lease_until > muster.now() and name = any($1::text[])`,
    [wanted],
  )
  return new Set(rows.map((row) => row.name))
}

async function findAgents(db: Db, projectId: string, named: readonly string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ name: string; id: string }>(
    `select name, id::text from agents
     where project_id = $1 and deleted_at is null and (name = any($2::text[]) or id = any($3::uuid[]))`,
    [projectId, named, named.filter((name) => isId(name))],
  )
  return new Set(rows.flatMap((row) => [row.name, row.id]))
}

/** The names under these keys, at any depth. A value that is no node may add names; nobody asks for those. */
function namesUnder(root: unknown, keys: readonly string[]): Set<string> {
  const names = new Set<string>()
  const waiting: unknown[] = [root]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (value === null || typeof value !== 'object') continue
    for (const [key, inner] of Object.entries(value)) {
      if (keys.includes(key)) {
        for (const name of [inner].flat()) if (typeof name === 'string') names.add(name)
      }
      if (typeof inner === 'object') waiting.push(inner)
    }
  }
  return names
}
