// The statements behind every change of an object: the row, its version, its audit entry and whatever the change sets
// off, all or nothing in one round trip. Tried and rejected: a transaction of single statements (begin, write, version,
// audit, match, commit are six round trips), and matching those who react after the commit (a crash in between loses it).
import { NOTE_COLUMNS, NOTE_TYPES } from '../audit/record.ts'
import type { PreparedSql } from '../db/pool.ts'
import { OBJECT_COLUMNS } from './object-row.ts'

/**
 * What a change sets off, as further parts of its statement. `parts` read the row of `change` (id, project_id, type, key,
 * properties, version, actor_type, actor_id, event, depth, delivery); `started` counts the runs they start.
 */
export interface SetsOff {
  parts: string
  started: string
}

export const nothingSetOff: SetsOff = { parts: '', started: '0' }

export interface WriteStatements {
  create: PreparedSql
  update: PreparedSql
  remove: PreparedSql
}

const FIRST_NOTE = 11
export const FIRST_OWN = FIRST_NOTE + NOTE_TYPES.length

/** Values 1 to 10: id, project, properties, words, author's type and id, run, approver, depth, delivery. */
export function writeStatements(setsOff: SetsOff): WriteStatements {
  const named = (name: string, change: string, parts: { op: string; event: string; more?: string }): PreparedSql => ({
    name: `object_${name}`,
    text: `
      with changed as (${change} returning project_id, ${OBJECT_COLUMNS}),
      ${parts.more ?? ''}
      kept as (
        insert into object_versions (object_id, version, op, properties, actor_type, actor_id, run_id, approved_by)
        select id, version, '${parts.op}', properties, actor_type, actor_id, $7::uuid, $8::uuid from changed
      ), noted as (
        insert into audit_log (${NOTE_COLUMNS}) select ${notePlaces()} from changed
      ), change as (
        select c.*, '${parts.event}' as event, $9::int as depth, $10::uuid as delivery from changed c
      )${setsOff.parts}
      select ${OBJECT_COLUMNS}, ${setsOff.started}::int as started from changed`,
  })
  return {
    create: named(
      'create',
      `insert into objects (id, project_id, properties, words, actor_type, actor_id, type, key)
       values ($1::uuid, $2::uuid, $3::jsonb, array_to_tsvector($4::text[]), $5::text, $6::uuid, $${FIRST_OWN}::text,
         $${FIRST_OWN + 1}::text)
       on conflict (project_id, type, key) where key is not null and deleted_at is null do nothing`,
      { op: 'create', event: 'created' },
    ),
    update: named('update', changeSql('properties = $3::jsonb, words = array_to_tsvector($4::text[])'), {
      op: 'update',
      event: 'updated',
    }),
    remove: named('delete', changeSql('deleted_at = muster.now()'), {
      op: 'delete',
      event: 'deleted',
      // Its edges lead nowhere from now on. (The places nobody else reads here must have a type all the same.)
      more: `unlinked as (
        update relationships r set deleted_at = muster.now() from changed c
        where (r.from_id = c.id or r.to_id = c.id) and r.deleted_at is null
      ), unused as (select $3::jsonb, $4::text[]),`,
    }),
  }
}

/** Only where the object still stands at the version that was looked at. */
const changeSql = (set: string): string => `
  update objects set ${set}, version = version + 1, actor_type = $5::text, actor_id = $6::uuid, updated_at = muster.now()
  where id = $1::uuid and project_id = $2::uuid and version = $${FIRST_OWN}::int and deleted_at is null`

const notePlaces = (): string => NOTE_TYPES.map((type, index) => `$${FIRST_NOTE + index}::${type}`).join(', ')
