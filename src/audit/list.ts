import type { Db } from '../db/pool.ts'
import type { AuditEntry } from '../kernel/access.ts'
import { invalidRequest } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'

interface AuditRow {
  seq: number
  id: string
  project_id: string | null
  action: string
  actor_type: AuditEntry['actor']['type']
  actor_id: string | null
  target_type: string | null
  target_id: string | null
  details: Record<string, unknown>
  request_id: string | null
  address: string | null
  at: Date
}

/** An entry without the names of its actor and its target, which are known above. */
type StoredEntry = Omit<AuditEntry, 'actor_name' | 'target_name' | 'target_exists'>

export interface AuditQuery {
  /** Null lists the whole instance. */
  projectId: string | null
  limit: number
  /** The seq of the last entry seen. */
  cursor?: string | undefined
  /** `run.start`, or the words before a point: `run` is all of `run.start`, `run.cancel` and so on. */
  action?: string | undefined
  /** The ids of those who act in several projects, and of those who act in one. */
  actors?: { people: readonly string[]; others: readonly string[] } | undefined
}

const COLUMNS = `seq, id, project_id, action, actor_type, actor_id, target_type, target_id, details, request_id, address,
  at`

/** Newest first. */
export async function listAudit(db: Db, query: AuditQuery): Promise<Page<StoredEntry>> {
  const { limit, cursor } = query
  if (cursor !== undefined && !/^[1-9]\d{0,14}$/.test(cursor)) {
    throw invalidRequest('cursor is not one that this list gave.')
  }
  const { sql, values } = query.action === undefined && !query.actors ? plainList(query) : filteredList(query)
  const { rows } = await db.query<AuditRow>(sql, [Number(cursor ?? Number.MAX_SAFE_INTEGER), limit + 1, ...values])
  const items = rows.slice(0, limit).map(toEntry)
  const last = items.at(-1)
  return { items, next_cursor: rows.length > limit && last ? String(last.seq) : null }
}

interface Statement {
  sql: string
  /** The values from $3 on. */
  values: unknown[]
}

const plainList = ({ projectId }: AuditQuery): Statement => ({
  sql: `select ${COLUMNS} from audit_log where seq < $1 ${projectId === null ? '' : 'and project_id = $3'}
        order by seq desc limit $2`,
  values: projectId === null ? [] : [projectId],
})

/**
 * Each action of each actor is one search in an index, and their entries are merged. The actions are looked up in the
 * same index, from one to the next: they are few, however many entries there are.
 */
function filteredList({ projectId, action = '', actors }: AuditQuery): Statement {
  const values: unknown[] = action === '' ? [''] : [action, `${action}/`]
  const bind = (value: unknown): string => `$${values.push(value) + 2}`
  const ofProject = projectId === null ? '' : bind(projectId)
  const parts: Part[] = []
  if (!actors) {
    const who = 'values (null::text)'
    if (ofProject) parts.push({ who, word: `(l.action || '') collate "C"`, where: `l.project_id = ${ofProject}` })
    else parts.push({ who, word: 'substr(l.action, 1) collate "C"', where: 'true' })
  }
  const word = 'l.action collate "C"'
  if (actors && ofProject) {
    const areMine = `l.project_id = ${ofProject} and l.actor_type in ('user', 'instance_admin')`
    parts.push({ who: unnest(bind(actors.people)), word, where: `${areMine} and l.actor_id = w.actor` })
    // A comparison that uses no index: these actors have no entries elsewhere.
    const isHere = `l.project_id is not distinct from ${ofProject}`
    parts.push({ who: unnest(bind(actors.others)), word, where: `l.actor_id = w.actor and ${isHere}` })
  }
  if (actors && !ofProject) {
    parts.push({ who: unnest(bind([...actors.people, ...actors.others])), word, where: 'l.actor_id = w.actor' })
  }
  const withs = parts.map((part, place) => `found_${place} (actor, action) as (${actionsOf(part, place, action)})`)
  const pages = parts.map((part, place) => entriesOf(part, place, action))
  const sql = `with recursive ${withs.join(', ')}
    select ${COLUMNS} from (${pages.join(' union all ')}) merged order by seq desc limit $2`
  return { sql, values }
}

interface Part {
  /** SQL that selects the actors. */
  who: string
  /** SQL: the action of an entry `l`, spelled as in the index that is meant (migration 0056). */
  word: string
  /** SQL: an entry `l` of the actor `w`. */
  where: string
}

const unnest = (ids: string): string => `select unnest(${ids}::text[])`

/** A slash comes next after the point, so every action below the given words lies before it. */
function actionsOf({ who, word, where }: Part, place: number, action: string): string {
  const next = (after: string): string => `
    select ${word} as action from audit_log l
    where ${where} and ${word} ${after} ${action === '' ? '' : `and ${word} < $4`}
    order by ${word} limit 1`
  return `select w.actor, n.action from (${who}) as w (actor) cross join lateral (${next('>= $3')}) n
    union all
    select w.actor, n.action from found_${place} w cross join lateral (${next('> w.action')}) n`
}

/**
 * Two comparisons instead of `=`, and the action in the order: otherwise PostgreSQL may read all entries by their age in
 * the hope to meet the action soon.
 */
function entriesOf({ word, where }: Part, place: number, action: string): string {
  return `select e.* from found_${place} w cross join lateral (
      select ${COLUMNS} from audit_log l
      where ${where} and ${word} >= w.action and ${word} <= w.action and l.seq < $1
      order by ${word}, l.seq desc limit $2
    ) e ${action === '' ? '' : `where w.action = $3 or starts_with(w.action, $3 || '.')`}`
}

function toEntry(row: AuditRow): StoredEntry {
  const { actor_type, actor_id, target_type, target_id, at, ...rest } = row
  return {
    ...rest,
    actor: { type: actor_type, id: actor_id },
    target: { type: target_type, id: target_id },
    at: at.toISOString(),
  }
}
