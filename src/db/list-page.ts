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

interface List<Row, Item> {
  /** Several statements are merged by age: each is read by its own index, and no further than the page may need. */
  sql: string | readonly string[]
  values: readonly unknown[]
  query: PageQuery
  toItem: (row: Row) => Item
  /** Heavy rows may be large: they are read a few at a time, and a page ends early once it is large. */
  isHeavy?: boolean
}

/** A page of heavy rows ends after HEAVY_PAGE characters, and at most HEAVY_ROWS are read at once. */
const HEAVY_PAGE = 4 * 1_048_576
const HEAVY_ROWS = 20

/** `sql` selects at least id and created_at, with `values` as its first parameters, and has no order of its own. */
export async function listPage<Row extends { id: string }, Item>(db: Db, list: List<Row, Item>): Promise<Page<Item>> {
  const { limit, cursor } = list.query
  const items: Item[] = []
  let size = 0
  let after = cursor === undefined ? null : decodeCursor(cursor)
  for (;;) {
    const wanted = limit - items.length
    const count = list.isHeavy ? Math.min(wanted, HEAVY_ROWS) : wanted
    const rows = await readRows(db, list, after, count + 1)
    const shown = rows.slice(0, count)
    const last = shown.at(-1)
    for (const { cursor_at: _, ...row } of shown) items.push(list.toItem(row as unknown as Row)) // the position is ours
    if (rows.length <= count || !last) return { items, next_cursor: null }
    if (list.isHeavy) size += JSON.stringify(items.slice(-shown.length)).length
    if (items.length === limit || size > HEAVY_PAGE) return { items, next_cursor: encodeCursor(last) }
    after = { at: last.cursor_at, id: last.id }
  }
}

async function readRows<Row extends { id: string }, Item>(
  db: Db,
  list: List<Row, Item>,
  after: { at: number; id: string } | null,
  count: number,
): Promise<(Row & Positioned)[]> {
  const at = list.values.length + 2
  const where = after
    ? `where (created_at, id) < (timestamptz 'epoch' + $${at} * interval '1 us', $${at + 1}::uuid)`
    : ''
  const order = `order by created_at desc, id desc limit $${list.values.length + 1}`
  const positioned = (sql: string): string =>
    `select *, (extract(epoch from created_at) * 1000000)::bigint as cursor_at from (${sql}) as listed ${where} ${order}`
  const [first = '', ...others] = typeof list.sql === 'string' ? [list.sql] : list.sql
  const merged = (): string =>
    `select * from (${[first, ...others].map((sql) => `(${positioned(sql)})`).join('\nunion all ')}) as merged ${order}`
  const { rows } = await db.query<Row & Positioned>(others.length === 0 ? positioned(first) : merged(), [
    ...list.values,
    count,
    ...(after ? [after.at, after.id] : []),
  ])
  return rows
}

const encodeCursor = (row: Positioned): string => Buffer.from(`${row.cursor_at}.${row.id}`).toString('base64url')

function decodeCursor(cursor: string): { at: number; id: string } {
  const [at = '', id = ''] = Buffer.from(cursor, 'base64url').toString('latin1').split('.')
  if (!/^\d{1,16}$/.test(at) || !isId(id)) throw invalidRequest('cursor is not one that this list gave.')
  return { at: Number(at), id }
}
