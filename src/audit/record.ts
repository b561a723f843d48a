// Who did what. An entry is written by the very statement that makes the change, so there is no change without its
// entry and no entry without its change, and it costs no round trip of its own.
import type { Db } from '../db/pool.ts'
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

const COLUMNS = `id, action, actor_type, actor_id, request_id, address, project_id, target_type, target_id, details`
const COLUMN_TYPES = ['uuid', 'text', 'text', 'text', 'text', 'text', 'uuid', 'text', 'text', 'jsonb']

/**
 * Runs one data-changing statement that ends in `returning` and notes it in the audit log, atomically and in one round
 * trip. Where the statement changed no row nothing is noted. Answers the rows it returned.
 */
export async function changeAudited<Row extends object>(
  db: Db,
  change: { sql: string; values: readonly unknown[]; note: AuditNote },
): Promise<Row[]> {
  const noteValues = COLUMN_TYPES.map((type, index) => `$${change.values.length + index + 1}::${type}`).join(', ')
  const { rows } = await db.query<Row>(
    `with change as (${change.sql}),
       noted as (insert into audit_log (${COLUMNS}) select ${noteValues} where exists (select from change))
     select * from change`,
    [...change.values, ...valuesOf(change.note)],
  )
  return rows
}

/** Notes what is no single statement of ours: a sign-in, a refused capability, a change made inside a transaction. */
export async function recordAudit(db: Db, note: AuditNote): Promise<void> {
  const placeholders = COLUMN_TYPES.map((type, index) => `$${index + 1}::${type}`).join(', ')
  await db.query(`insert into audit_log (${COLUMNS}) values (${placeholders})`, valuesOf(note))
}

function valuesOf(note: AuditNote): unknown[] {
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
