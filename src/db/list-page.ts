// Lists are read newest first by (created_at, id). The cursor carries both, to the microsecond, so a page neither
// repeats nor misses a row when others are created or deleted meanwhile.
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

/** Only rows of a list with large columns have these. */
interface Found {
  found?: number
  found_place?: number
}

interface List<Row, Item> {
  /** Several statements are merged by age: each is read by its own index, and no further than the page may need. */
  sql: string | readonly string[]
  values: readonly unknown[]
  query: PageQuery
  toItem: (row: Row) => Item
  /** Columns whose values may be large, of type text or jsonb. A page of such rows ends early once it is large. */
  largeColumns?: readonly string[]
}

/** The large columns of a page hold at most this many bytes together, unless its first row alone holds more. */
export const LARGE_PAGE = 4 * 1_048_576

/** `sql` selects at least id and created_at, with `values` as its first parameters, and has no order of its own. */
export async function listPage<Row extends { id: string }, Item>(db: Db, list: List<Row, Item>): Promise<Page<Item>> {
  const { limit, cursor } = list.query
  const after = cursor === undefined ? null : decodeCursor(cursor)
  const rows = selectRows(list, after)
  const sql = list.largeColumns ? selectFitting(rows, list.largeColumns) : rows
  const { rows: read } = await db.query<Row & Positioned & Found>(sql, [
    ...list.values,
    limit + 1,
    ...(after ? [after.at, after.id] : []),
  ])
  const found = read[0]?.found ?? read.length
  const shown = read.slice(0, limit)
  const last = shown.at(-1)
  return {
    // The position, the count and the place belong to the list, not to the row.
    items: shown.map(({ cursor_at: _, found: __, found_place: ___, ...row }) => list.toItem(row as unknown as Row)),
    next_cursor: last && found > shown.length ? encodeCursor(last) : null,
  }
}

function selectRows<Row, Item>(list: List<Row, Item>, after: { at: number; id: string } | null): string {
  const at = list.values.length + 2
  const where = after
    ? `where (created_at, id) < (timestamptz 'epoch' + $${at} * interval '1 us', $${at + 1}::uuid)`
    : ''
  const order = `order by created_at desc, id desc limit $${list.values.length + 1}`
  const positioned = (sql: string): string =>
    `select *, (extract(epoch from created_at) * 1000000)::bigint as cursor_at from (${sql}) as listed ${where} ${order}`
  const [first = '', ...others] = typeof list.sql === 'string' ? [list.sql] : list.sql
  if (others.length === 0) return positioned(first)
  return `select * from (${[first, ...others].map((sql) => `(${positioned(sql)})`).join('\nunion all ')}) as merged ${order}`
}

/**
 * The first rows that fit into LARGE_PAGE, each with the number of rows found. The rows are found once; the recursion
 * reads their large values one row at a time until the page is full. The size of a jsonb is that of its text: its
 * stored size may be a hundredth of it.
 */
function selectFitting(rows: string, largeColumns: readonly string[]): string {
  const size = largeColumns.map((column) => `coalesce(octet_length(${column}::text), 0)::bigint`).join(' + ')
  return `with recursive found_rows as materialized (
      select row_number() over (order by created_at desc, id desc) as found_place, * from (${rows}) as found
    ), fitting as (
      select found_place, ${size} as bytes from found_rows where found_place = 1
      union all
      select f.found_place, fitting.bytes + ${size} from fitting
        join found_rows f on f.found_place = fitting.found_place + 1
        where fitting.bytes <= ${LARGE_PAGE}
    )
    select f.*, (select count(*) from found_rows) as found from found_rows f join fitting using (found_place)
      where found_place = 1 or bytes <= ${LARGE_PAGE} order by found_place`
}

const encodeCursor = (row: Positioned): string => Buffer.from(`${row.cursor_at}.${row.id}`).toString('base64url')

function decodeCursor(cursor: string): { at: number; id: string } {
  const [at = '', id = ''] = Buffer.from(cursor, 'base64url').toString('latin1').split('.')
  if (!/^\d{1,16}$/.test(at) || !isId(id)) throw invalidRequest('cursor is not one that this list gave.')
  return { at: Number(at), id }
}
