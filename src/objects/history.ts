import type { PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { invalidRequest } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import type { ObjectVersion } from '../kernel/object.ts'

type VersionRow = Omit<ObjectVersion, 'at'> & { at: Date }

/** A page ends early once it holds HEAVY_PAGE characters; at most AT_ONCE versions are read at once. */
const HEAVY_PAGE = 4 * 1_048_576
const AT_ONCE = 20

/** Every version of an object, newest first. The cursor is the last version seen. */
export async function listObjectVersions(
  db: Db,
  objectId: string,
  { limit, cursor }: PageQuery,
): Promise<Page<ObjectVersion>> {
  if (cursor !== undefined && !/^\d{1,9}$/.test(cursor)) throw invalidRequest('cursor is not one that this list gave.')
  const items: ObjectVersion[] = []
  let size = 0
  for (let before = cursor === undefined ? null : Number(cursor); ; ) {
    const count = Math.min(limit - items.length, AT_ONCE)
    const rows = await readVersions(db, objectId, before, count + 1)
    for (const row of rows.slice(0, count)) {
      items.push({ ...row, at: row.at.toISOString() })
      size += JSON.stringify(row.properties).length
    }
    if (rows.length <= count) return { items, next_cursor: null }
    before = items.at(-1)?.version ?? null
    if (items.length === limit || size > HEAVY_PAGE) return { items, next_cursor: String(before) }
  }
}

async function readVersions(db: Db, objectId: string, before: number | null, count: number): Promise<VersionRow[]> {
  const { rows } = await db.query<VersionRow>(
    `select version, op, properties, actor_type, actor_id, run_id, approved_by, at from object_versions
     where object_id = $1 and ($2::int is null or version < $2) order by version desc limit $3`,
    [objectId, before, count],
  )
  return rows
}
