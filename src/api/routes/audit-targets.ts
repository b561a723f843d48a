// The names of the things that entries of the audit log are about.
import type { Db } from '../../db/pool.ts'
import type { AuditEntry } from '../../kernel/access.ts'
import { isId } from '../../kernel/id.ts'

/** SQL for each type of target: its project, the name by which people know it, and whether it exists. `$n`: the ids. */
const LOOKUPS: Readonly<Record<string, string>> = {
  agent: 'select id, project_id, name, deleted_at is null from agents where id = any($n)',
  run: `select r.id, r.project_id, a.name, true from agent_runs r left join agents a on a.id = r.agent_id
    where r.id = any($n)`,
  flow: 'select id, project_id, name, true from flows where id = any($n)',
  flow_run: `select r.id, r.project_id, f.name, true from flow_runs r left join flows f on f.id = r.flow_id
    where r.id = any($n)`,
  object: `select id, project_id, coalesce(key, left(properties->>'name', 200), left(properties->>'title', 200)),
    deleted_at is null from objects where id = any($n)`,
  relationship: 'select id, project_id, type, deleted_at is null from relationships where id = any($n)',
  task: 'select id, project_id, title, true from tasks where id = any($n)',
  eval: 'select id, project_id, name, true from evals where id = any($n)',
  hook: 'select id, project_id, name, true from hooks where id = any($n)',
  key: 'select id, project_id, name, revoked_at is null from api_keys where id = any($n)',
  member: 'select id, project_id, email, true from members where id = any($n)',
  user: 'select id, null::uuid, email, true from auth.users where id = any($n)',
  project: 'select id, id, name, deleted_at is null from projects where id = any($n)',
}
const TYPES = Object.keys(LOOKUPS)
const FOUND = '(id, project_id, name, is_there)'
const SQL = TYPES.map((type, place) => {
  const lookup = LOOKUPS[type]?.replace('$n', `$${place + 1}::uuid[]`)
  return `select '${type}' as type, ${type}_found.* from (${lookup}) as ${type}_found ${FOUND}`
}).join('\nunion all ')

interface Found {
  type: string
  id: string
  project_id: string | null
  name: string | null
  is_there: boolean
}

/** The things whose id in the log is their name. */
const NAMED = new Set(['mcp_server', 'prompt', 'provider', 'system'])

type Untold = Omit<AuditEntry, 'target_name' | 'target_exists'>

/**
 * Adds the name of each target, in one query for all entries: as it is now, else as the entry noted it. The id in an
 * entry may be one that an agent made up, so a thing of another project is none.
 */
export async function nameTargets(db: Db, entries: readonly Untold[]): Promise<AuditEntry[]> {
  const idsOf = (type: string): string[] => {
    const ids = entries.flatMap(({ target }) => (target.type === type && target.id !== null ? [target.id] : []))
    return [...new Set(ids.filter(isId))]
  }
  const { rows } = await db.query<Found>(SQL, TYPES.map(idsOf))
  const found = new Map(rows.map((row) => [`${row.type} ${row.id}`, row]))
  return entries.map((entry) => {
    const { type, id } = entry.target
    if (type === null || id === null) return { ...entry, target_name: notedName(entry), target_exists: null }
    if (!Object.hasOwn(LOOKUPS, type)) {
      return { ...entry, target_name: NAMED.has(type) ? id : notedName(entry), target_exists: null }
    }
    const thing = found.get(`${type} ${id.toLowerCase()}`)
    const own = thing !== undefined && thing.project_id === entry.project_id ? thing : null
    return { ...entry, target_name: own?.name ?? notedName(entry), target_exists: own?.is_there ?? false }
  })
}

const NOTED_AS = ['name', 'title', 'email', 'key']

function notedName({ details }: Pick<AuditEntry, 'details'>): string | null {
  const noted = NOTED_AS.map((field) => details[field]).find((text) => typeof text === 'string' && text !== '')
  return typeof noted === 'string' ? noted : null
}
