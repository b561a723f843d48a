// The record of who did what. The statement that makes a change also writes its entry, so there is no change without
// its entry and no entry without its change, and an entry costs no round trip of its own.
import type { Db, PreparedSql } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'

export interface AuditNote {
  /** noun.verb, past tense understood: `key.create`, `project.halt`. */
  action: string
  actor: Actor
  projectId: string | null
  targetType: string
  targetId: string | null
  /** Facts worth keeping; never a secret. */
  details?: Readonly<Record<string, unknown>>
}

/** The columns of an entry and their types, for statements that note many changes at once. */
export const NOTE_COLUMNS = `id, action, actor_type, actor_id, request_id, address, project_id, target_type, target_id, details`
export const NOTE_TYPES = ['uuid', 'text', 'text', 'text', 'text', 'text', 'uuid', 'text', 'text', 'jsonb']

/**
 * Runs one data-changing statement that ends in `returning` and notes it in the audit log, atomically and in one round
 * trip. A statement that changes no row is not noted. Returns the rows of the statement. `sql` is a constant of the
 * source, everything that varies is among `values`: connections keep the statement prepared.
 */
export async function changeAudited<Row extends object>(
  db: Db,
  change: {
    sql: string
    /** Further parts of the WITH, which may select from `change`. */
    also?: string
    values: readonly unknown[]
    note: AuditNote
  },
): Promise<Row[]> {
  const { rows } = await db.query<Row>(withNote(change.sql, change.also ?? null, change.values.length), [
    ...change.values,
    ...noteValues(change.note),
  ])
  return rows
}

// Planning a change together with its note takes PostgreSQL as long as executing it, so each connection plans it once.
const withNotes = new Map<string, PreparedSql>()

function withNote(sql: string, also: string | null, valueCount: number): PreparedSql {
  const key = also === null ? sql : `${sql}, ${also}`
  const known = withNotes.get(key)
  if (known) return known
  const notePlaces = NOTE_TYPES.map((type, index) => `$${valueCount + index + 1}::${type}`).join(', ')
  const text = `with change as (${sql}),
       noted as (insert into audit_log (${NOTE_COLUMNS}) select ${notePlaces} where exists (select from change))${also === null ? '' : `, ${also}`}
     select * from change`
  const prepared = { name: `change_${withNotes.size + 1}`, text }
  withNotes.set(key, prepared)
  return prepared
}

/** Notes an action that is no single statement: a sign-in, a refused capability, a change made inside a transaction. */
export async function recordAudit(db: Db, note: AuditNote): Promise<void> {
  const placeholders = NOTE_TYPES.map((type, index) => `$${index + 1}::${type}`).join(', ')
  await db.query(`insert into audit_log (${NOTE_COLUMNS}) values (${placeholders})`, noteValues(note))
}

/** As `recordAudit`, for many actions in one statement. */
export async function recordAudits(db: Db, notes: readonly AuditNote[]): Promise<void> {
  const values = notes.map(noteValues)
  const lists = NOTE_TYPES.map((type, index) => `$${index + 1}::${type}[]`).join(', ')
  await db.query(
    `insert into audit_log (${NOTE_COLUMNS}) select * from unnest(${lists})`,
    NOTE_TYPES.map((_, column) => values.map((each) => each[column])),
  )
}

/** The values of an entry, in the order of NOTE_COLUMNS. */
export function noteValues(note: AuditNote): unknown[] {
  const { actor } = note
  return [
    newId(),
    note.action,
    actor.type,
    actor.id,
    actor.requestId,
    actor.address,
    note.projectId,
    note.targetType,
    note.targetId,
    JSON.stringify(note.details ?? {}),
  ]
}
