// The statements behind every change of an object: the row, its version, its audit entry and the runs that it starts,
// all or nothing in one round trip. Tried and rejected: a transaction of single statements (six round trips), and
// matching reacting agents after the commit (a crash in between loses their runs).
import { NOTE_COLUMNS, NOTE_TYPES } from '../audit/record.ts'
import { MARK_CHANGED } from '../db/changed-in.ts'
import type { PreparedSql } from '../db/pool.ts'
import { OBJECT_COLUMNS } from './object-row.ts'

/**
 * The reactions to a change, as further parts of its statement. `parts` read the rows of `change` (id, project_id,
 * type, key, properties, version, actor_type, actor_id, event, depth, delivery); `started` counts their runs.
 */
export interface SetsOff {
  parts: string
  started: string
}

export interface WriteStatements {
  create: PreparedSql
  update: PreparedSql
  remove: PreparedSql
}

const FIRST_NOTE = 11
const FIRST_OWN = FIRST_NOTE + NOTE_TYPES.length

/** `now` is the transaction's start and may be earlier than the last version; a new version is never older. */
const CHANGED_AT = 'greatest(updated_at, muster.now())'

export function writeStatements(setsOff: SetsOff): WriteStatements {
  return {
    create: createStatement(setsOff),
    update: changeStatement('update', 'updated', setsOff, {
      set: 'properties = $3::jsonb, words = $4::tsvector',
    }),
    remove: changeStatement('delete', 'deleted', setsOff, {
      set: `deleted_at = ${CHANGED_AT}`,
      // All edges of the deleted object, which is locked, are deleted too. The instant is taken from the object:
      // calling muster.now() for each of 200,000 edges took two of nine seconds. (PostgreSQL demands a type for every
      // parameter, also for one that no other part reads.)
      more: `unlinked as (
        update relationships r set deleted_at = c.updated_at from changed c
        where (r.from_id = c.id or r.to_id = c.id) and r.deleted_at is null
      ), unused as (select $3::jsonb, $4::tsvector),`,
    }),
  }
}

const GIVEN = [
  ['id', 'uuid'],
  ['project_id', 'uuid'],
  ['properties', 'jsonb'],
  ['words', 'text'],
  ['actor_type', 'text'],
  ['actor_id', 'uuid'],
  ['run_id', 'uuid'],
  ['approved_by', 'uuid'],
  ['depth', 'int'],
  ['delivery', 'uuid'],
  ['type', 'text'],
  ['key', 'text'],
] as const

/** Creates any number of objects: each value is a list, in the order of GIVEN and then of the columns of a note. */
function createStatement(setsOff: SetsOff): PreparedSql {
  const places = (types: readonly string[], from: number): string =>
    types.map((type, index) => `$${from + index}::${type}[]`).join(', ')
  const given = GIVEN.map(([name]) => name).join(', ')
  const types = GIVEN.map(([, type]) => type)
  return {
    name: 'object_create',
    text: `
      with given as (select * from unnest(${places(types, 1)}) as g (${given})),
      changed as (
        insert into objects (id, project_id, properties, words, actor_type, actor_id, type, key)
        select id, project_id, properties, words::tsvector, actor_type, actor_id, type, key from given
        on conflict (project_id, type, key) where key is not null and deleted_at is null do nothing
        returning project_id, ${OBJECT_COLUMNS}
      ), kept as (
        insert into object_versions (object_id, version, op, properties, actor_type, actor_id, run_id, approved_by)
        select c.id, c.version, 'create', c.properties, c.actor_type, c.actor_id, g.run_id, g.approved_by
        from changed c join given g on g.id = c.id
      ), noted as (
        insert into audit_log (${NOTE_COLUMNS})
        select n.* from unnest(${places(NOTE_TYPES, GIVEN.length + 1)}) as n (${NOTE_COLUMNS})
        where n.target_id in (select id::text from changed)
      ), change as (
        select c.*, 'created' as event, g.depth, g.delivery from changed c join given g on g.id = c.id
      )${setsOff.parts}
      select ${OBJECT_COLUMNS}, ${setsOff.started}::int as started from changed`,
  }
}

/** Values 1 to 10: id, project, properties, words, author's type and id, run, approver, depth, delivery. */
function changeStatement(
  op: 'update' | 'delete',
  event: string,
  setsOff: SetsOff,
  { set, more = '' }: { set: string; more?: string },
): PreparedSql {
  return {
    name: `object_${op}`,
    text: `
      with changed as (${changeSql(set)} returning project_id, ${OBJECT_COLUMNS}),
      ${more}
      kept as (
        insert into object_versions (object_id, version, op, properties, actor_type, actor_id, run_id, approved_by, at)
        select id, version, '${op}', properties, actor_type, actor_id, $7::uuid, $8::uuid, updated_at from changed
      ), noted as (
        insert into audit_log (${NOTE_COLUMNS}) select ${notePlaces()} from changed
      ), change as (
        select c.*, '${event}' as event, $9::int as depth, $10::uuid as delivery from changed c
      )${setsOff.parts}
      select ${OBJECT_COLUMNS}, ${setsOff.started}::int as started from changed`,
  }
}

/** Changes the object only if it is still at the version that was read. */
const changeSql = (set: string): string => `
  update objects set ${set}, version = version + 1, actor_type = $5::text, actor_id = $6::uuid,
    updated_at = ${CHANGED_AT}, ${MARK_CHANGED}
  where id = $1::uuid and project_id = $2::uuid and version = $${FIRST_OWN}::int and deleted_at is null`

const notePlaces = (): string => NOTE_TYPES.map((type, index) => `$${FIRST_NOTE + index}::${type}`).join(', ')
