import { changeAudited } from '../audit/record.ts'
import { type RowOf, tellInstants } from '../db/instants.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { newId } from '../kernel/id.ts'
import type { GraphChange, Relationship } from '../kernel/object.ts'
import type { Actor } from '../kernel/principal.ts'
import type { Author } from './author.ts'

const COLUMNS = 'id, type, from_id, to_id, properties, actor_type, actor_id, run_id, approved_by, created_at'
type RelationshipRow = RowOf<Relationship>

export type Relation = Extract<GraphChange, { op: 'relate' }>
/** missing: an end is no live object of this project · taken: these ends are related so already. */
export type RelateOutcome = { kind: 'related'; relationship: Relationship } | { kind: 'missing' } | { kind: 'taken' }

/** The types of both ends, locked until the transaction ends; null if one is no live object of this project. */
export async function endTypes(db: Db, projectId: string, ends: readonly string[]): Promise<string[] | null> {
  const ids = [...new Set(ends)]
  const { rows } = await db.query<{ type: string }>(
    `select type from objects where id = any($1) and project_id = $2 and deleted_at is null order by id for share`,
    [ids, projectId],
  )
  return rows.length === ids.length ? rows.map((row) => row.type) : null
}

export async function relate(
  db: Db,
  { projectId, change, author }: { projectId: string; change: Relation; author: Author },
): Promise<RelateOutcome> {
  if (!(await endTypes(db, projectId, [change.fromId, change.toId]))) return { kind: 'missing' }
  const { type, id: authorId, runId, approvedBy, actor } = author
  const id = newId()
  const rows = await changeAudited<RelationshipRow>(db, {
    sql: `insert into relationships (id, project_id, type, from_id, to_id, properties, actor_type, actor_id, run_id, approved_by)
          select $1::uuid, $2::uuid, $3::text, $4::uuid, $5::uuid, $6::jsonb, $7::text, $8::uuid, $9::uuid, $10::uuid
          on conflict (from_id, to_id, type) where deleted_at is null do nothing
          returning ${COLUMNS}`,
    values: [
      id,
      projectId,
      change.type,
      change.fromId,
      change.toId,
      JSON.stringify(change.properties),
      type,
      authorId,
      runId,
      approvedBy,
    ],
    note: {
      action: 'relationship.create',
      actor,
      projectId,
      targetType: 'relationship',
      targetId: id,
      details: { type: change.type, from_id: change.fromId, to_id: change.toId, ...(runId ? { run_id: runId } : {}) },
    },
  })
  return rows[0] ? { kind: 'related', relationship: toRelationship(rows[0]) } : { kind: 'taken' }
}

/** Lists relationships from and to the object, newest first. One from the object to itself is listed once. */
export async function listRelationships(db: Db, objectId: string, query: PageQuery): Promise<Page<Relationship>> {
  const live = `select ${COLUMNS} from relationships where deleted_at is null`
  return listPage<RelationshipRow, Relationship>(db, {
    sql: [`${live} and from_id = $1`, `${live} and to_id = $1 and from_id <> $1`],
    values: [objectId],
    query,
    toItem: toRelationship,
  })
}

export async function deleteRelationship(db: Db, projectId: string, id: string, actor: Actor): Promise<void> {
  const rows = await changeAudited(db, {
    sql: `update relationships set deleted_at = muster.now()
          where id = $1 and project_id = $2 and deleted_at is null returning id`,
    values: [id, projectId],
    note: { action: 'relationship.delete', actor, projectId, targetType: 'relationship', targetId: id },
  })
  if (rows.length === 0) throw notFound('relationship')
}

const toRelationship = (row: RelationshipRow): Relationship => tellInstants(row)
