import type { PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { invalidRequest } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import type { ObjectVersion } from '../kernel/object.ts'

type VersionRow = Omit<ObjectVersion, 'at'> & { at: Date }

/** Every version of an object, newest first. The cursor is the last version seen. */
export async function listVersions(
  db: Db,
  objectId: string,
  { limit, cursor }: PageQuery,
): Promise<Page<ObjectVersion>> {
  if (cursor !== undefined && !/^\d{1,9}$/.test(cursor)) throw invalidRequest('cursor is not one that this list gave.')
  const { rows } = await db.query<VersionRow>(
    `select version, op, properties, actor_type, actor_id, run_id, approved_by, at from object_versions
     where object_id = $1 and ($2::int is null or version < $2) order by version desc limit $3`,
    [objectId, cursor === undefined ? null : Number(cursor), limit + 1],
  )
  const shown = rows.slice(0, limit)
  return {
    items: shown.map((row) => ({ ...row, at: row.at.toISOString() })),
    next_cursor: rows.length > limit ? String(shown.at(-1)?.version) : null,
  }
}
