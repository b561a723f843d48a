import type { Db } from '../db/pool.ts'
import { isId } from '../kernel/id.ts'
import type { KnownNames } from './validate.ts'

/** Which of the agents and functions that a flow names there are: asked once for all of them. */
export async function knownNames(
  db: Db,
  projectId: string,
  root: unknown,
  functions: { has(name: string): boolean },
): Promise<KnownNames> {
  const named = [...agentNames(root)]
  const agents = named.length === 0 ? new Set<string>() : await findAgents(db, projectId, named)
  return {
    isAgent: (name) => agents.has(name) || (isId(name) && agents.has(name.toLowerCase())),
    isFunction: (name) => functions.has(name),
  }
}

async function findAgents(db: Db, projectId: string, named: readonly string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ name: string; id: string }>(
    `select name, id::text from agents
     where project_id = $1 and deleted_at is null and (name = any($2::text[]) or id = any($3::uuid[]))`,
    [projectId, named, named.filter((name) => isId(name))],
  )
  return new Set(rows.flatMap((row) => [row.name, row.id]))
}

/** Wherever a node may name agents. What is no node names some too many, and nobody asks for those. */
function agentNames(root: unknown): Set<string> {
  const names = new Set<string>()
  const waiting: unknown[] = [root]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (value === null || typeof value !== 'object') continue
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'agent' || key === 'queen' || key === 'workers') {
        for (const name of [inner].flat()) if (typeof name === 'string') names.add(name)
      }
      if (typeof inner === 'object') waiting.push(inner)
    }
  }
  return names
}
