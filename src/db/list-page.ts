// Lists are read newest first by (created_at, id), a page at a time. The cursor carries both, to the microsecond, so a
// page neither repeats nor misses a row when others are created or deleted meanwhile.
import { invalidRequest } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { isId } from '../kernel/id.ts'
import type { Db } from './pool.ts'

export interface PageQuery {
  limit: number
  cursor?: string | undefined
}

interface Positioned {
  id: string
  cursor_at: number
}

/** `sql` selects at least id and created_at, with `values` as its first parameters, and has no order of its own. */
export async function listPage<Row extends { id: string }, Item>(
  db: Db,
  list: { sql: string; values: readonly unknown[]; query: PageQuery; toItem: (row: Row) => Item },
): Promise<Page<Item>> {
  const { limit, cursor } = list.query
  const after = cursor === undefined ? null : decodeCursor(cursor)
  const at = list.values.length + 2
  const where = after
    ? `where (created_at, id) < (timestamptz 'epoch' + $${at} * interval '1 us', $${at + 1}::uuid)`
    : ''
  const { rows } = await db.query<Row & Positioned>(
    `select *, (extract(epoch from created_at) * 1000000)::bigint as cursor_at from (${list.sql}) as listed ${where}
     order by created_at desc, id desc limit $${list.values.length + 1}`,
    [...list.values, limit + 1, ...(after ? [after.at, after.id] : [])],
  )
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    items: shown.map(({ cursor_at: _, ...row }) => list.toItem(row as unknown as Row)), // the position is ours alone
    next_cursor: rows.length > limit && last ? encodeCursor(last) : null,
  }
}

const encodeCursor = (row: Positioned): string => Buffer.from(`${row.cursor_at}.${row.id}`).toString('base64url')

function decodeCursor(cursor: string): { at: number; id: string } {
  const [at = '', id = ''] = Buffer.from(cursor, 'base64url').toString('latin1').split('.')
  if (!/^\d{1,16}$/.test(at) || !isId(id)) throw invalidRequest('cursor is not one that this list gave.')
  return { at: Number(at), id }
}
