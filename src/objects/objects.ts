// The graph: typed, versioned objects and their relationships. This file reads; write-objects.ts is the one write path.
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db, PreparedSql } from '../db/pool.ts'
import { notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import type { GraphObject } from '../kernel/object.ts'
import { OBJECT_COLUMNS, type ObjectRow, toObject } from './object-row.ts'
import { wordsQuery } from './object-words.ts'

const READ: PreparedSql = {
  name: 'object_read',
  text: `select ${OBJECT_COLUMNS} from objects where id = $1 and project_id = $2`,
}
const READ_LOCKED: PreparedSql = { name: 'object_lock', text: `${READ.text} for update` }

/** Finds deleted objects too; they are marked as deleted. Null if the project has no such object. */
export async function findObject(
  db: Db,
  projectId: string,
  objectId: string,
  { isLocked = false } = {},
): Promise<GraphObject | null> {
  const { rows } = await db.query<ObjectRow>(isLocked ? READ_LOCKED : READ, [objectId, projectId])
  return rows[0] ? toObject(rows[0]) : null
}

export async function getObject(db: Db, projectId: string, objectId: string): Promise<GraphObject> {
  const object = await findObject(db, projectId, objectId)
  if (!object) throw notFound('object')
  return object
}

const FIND_KEY: PreparedSql = {
  name: 'object_of_key',
  text: 'select id from objects where project_id = $1 and type = $2 and key = $3 and deleted_at is null',
}

/** The id of the live object with this type and key. */
export async function findByKey(db: Db, projectId: string, type: string, key: string): Promise<string | null> {
  const { rows } = await db.query<{ id: string }>(FIND_KEY, [projectId, type, key])
  return rows[0]?.id ?? null
}

export interface ObjectFilter {
  type?: string | undefined
  key?: string | undefined
  /** Words that the key and the properties hold together; the beginning of a word is enough. */
  q?: string | undefined
}

export async function listObjects(
  db: Db,
  projectId: string,
  { type, key, q }: ObjectFilter,
  query: PageQuery,
): Promise<Page<GraphObject>> {
  const words = q === undefined ? null : wordsQuery(q)
  if (q !== undefined && words === null) return { items: [], next_cursor: null }
  return listPage<ObjectRow, GraphObject>(db, {
    sql: `select ${OBJECT_COLUMNS} from objects where project_id = $1 and deleted_at is null
          ${type === undefined ? 'and $2::text is null' : 'and type = $2'}
          ${words === null ? 'and $3::text is null' : 'and words @@ $3::tsquery'}
          ${key === undefined ? 'and $4::text is null' : 'and key = $4'}`,
    values: [projectId, type ?? null, words, key ?? null],
    query,
    toItem: toObject,
    largeColumns: ['properties'],
  })
}
