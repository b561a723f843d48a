// The record of actions and their authors. The statement that makes a change also writes its entry, so neither is
// without the other, and an entry costs no round trip of its own.
import type { Db, PreparedSql } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'

export interface AuditNote {
  /** The form is noun.verb, read in the past tense: `key.create`, `project.halt`. */
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
 * trip. A statement that changes no row is not noted. `sql` is a constant of the source: connections keep the statement
 * prepared.
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

// Planning a change with its note takes as long as executing it, so each connection plans the statement once.
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

/** Notes an action that is not a single statement, such as a sign-in or a refused capability. */
export async function recordAudit(db: Db, note: AuditNote): Promise<void> {
  const placeholders = NOTE_TYPES.map((type, index) => `$${index + 1}::${type}`).join(', ')
  await db.query(`insert into audit_log (${NOTE_COLUMNS}) values (${placeholders})`, noteValues(note))
}

export async function recordAudits(db: Db, notes: readonly AuditNote[]): Promise<void> {
  const lists = NOTE_TYPES.map((type, index) => `$${index + 1}::${type}[]`).join(', ')
  await db.query(`insert into audit_log (${NOTE_COLUMNS}) select * from unnest(${lists})`, noteLists(notes))
}

/** The lists of the columns of entries, for statements that note many changes at once. */
export function noteLists(notes: readonly AuditNote[]): unknown[] {
  const values = notes.map(noteValues)
  return NOTE_TYPES.map((_, column) => {
    const list = values.map((each) => each[column])
    // Our own ids and nulls need no quotes. The driver looks for characters to escape in every text.
    const isPlain = column === 0 || list.every((each) => each === null)
    return isPlain ? `{${list.map((each) => each ?? 'null').join(',')}}` : list
  })
}

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
