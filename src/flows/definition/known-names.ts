import { guessAgent } from '../../agents/agent-names.ts'
import type { Db } from '../../db/pool.ts'
import { LEFT_CODE } from '../../db/source-column.ts'
import { isId } from '../../kernel/id.ts'
import { didYouMean } from '../../kernel/nearest.ts'
import { findNames, listNames } from '../../queue/process-names.ts'
import type { Patterns } from '../machine/pattern.ts'
import type { KnownNames } from './validate.ts'

export interface Checking {
  patterns: Patterns
  functions: { has(name: string): boolean; keys(): Iterable<string> }
  /** True for flows of an app module: agents that have left the code are unknown, as they are on an empty database. */
  isCode?: boolean
}

/** The agents and functions that a flow names and that exist: one query for all agents, one for all functions. */
export async function knownNames(
  db: Db,
  projectId: string,
  root: unknown,
  { functions, patterns, isCode = false }: Checking,
): Promise<KnownNames> {
  const agentFields = patterns.all.flatMap((pattern) => pattern.agentFields ?? [])
  const functionFields = patterns.all.flatMap((pattern) => pattern.functionFields ?? [])
  const named = [...namesUnder(root, ['agent', ...agentFields])]
  const found = named.length === 0 ? [] : await findAgents(db, projectId, named)
  const haveLeft = agentNames(found.filter(({ has_left }) => isCode && has_left))
  const agents = agentNames(found.filter(({ has_left }) => !(isCode && has_left)))
  const wanted = [...namesUnder(root, ['function', ...functionFields])].filter((name) => !functions.has(name))
  const elsewhere = wanted.length === 0 ? new Set<string>() : await findNames(db, 'functions', wanted)
  const isAgent = (name: string): boolean => agents.has(name) || (isId(name) && agents.has(name.toLowerCase()))
  const isFunction = (name: string): boolean => functions.has(name) || elsewhere.has(name)
  const guesses = await guessAgents(
    db,
    projectId,
    named.filter((name) => !isAgent(name) && !haveLeft.has(name)),
  )
  const others = wanted.every(isFunction) ? [] : await listNames(db, 'functions')
  let guessed = 0
  return {
    isAgent,
    isFunction,
    guessAgent: (name) => (haveLeft.has(name) ? ' It is no longer in the code.' : (guesses.get(name) ?? '')),
    guessFunction: (name) => (guessed++ < MOST_GUESSES ? didYouMean(name, [...functions.keys(), ...others]) : ''),
  }
}

const MOST_GUESSES = 5

/** Guesses for the first few names that nobody has: each takes a query. */
async function guessAgents(db: Db, projectId: string, unknown: readonly string[]): Promise<Map<string, string>> {
  const guesses = new Map<string, string>()
  for (const name of unknown.slice(0, MOST_GUESSES)) guesses.set(name, await guessAgent(db, projectId, name))
  return guesses
}

interface NamedAgent {
  name: string
  id: string
  has_left: boolean
}

async function findAgents(db: Db, projectId: string, named: readonly string[]): Promise<NamedAgent[]> {
  const { rows } = await db.query<NamedAgent>(
    `select name, id::text, ${LEFT_CODE} as has_left from agents
     where project_id = $1 and deleted_at is null and (name = any($2::text[]) or id = any($3::uuid[]))`,
    [projectId, named, named.filter((name) => isId(name))],
  )
  return rows
}

const agentNames = (agents: readonly NamedAgent[]): Set<string> => new Set(agents.flatMap(({ name, id }) => [name, id]))

/** The names under these keys, at any depth. A value that is no node may add names, which nobody looks up. */
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
