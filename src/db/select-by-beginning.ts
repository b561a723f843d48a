// Rows by the first letters of their id, as people type them.
import { createdWithin, type Period } from './select-by-status.ts'

type Ids = Readonly<Record<string, string | undefined>>

/** More rows than this are never asked for: a beginning that fits so many ids tells nothing. */
const MOST_FOUND = 201

interface Selected {
  columns: string
  table: string
  /** The letters in lower case and without dashes: see idBeginningField. */
  beginning: string
  /** The project and further ids that the rows must have. */
  among: Ids
  status?: string | undefined
  /** A condition without values. */
  within?: string | undefined
  period?: Period
}

/**
 * SQL for `listPage`. The range of ids is read from the primary key and nothing else: `is not distinct from` uses no
 * index, so the planner cannot read the rows of the project by age in the hope to meet these ids soon.
 */
export function selectByBeginning(selected: Selected): { sql: string; values: unknown[] } {
  const { columns, table, beginning, among, status, within, period = {} } = selected
  const values: unknown[] = [uuidOf(beginning, '0'), uuidOf(beginning, 'f')]
  const conditions = Object.entries(among).flatMap(([column, id]) =>
    id === undefined ? [] : [`${column} is not distinct from $${values.push(id)}::uuid`],
  )
  if (status !== undefined) conditions.push(`status is not distinct from $${values.push(status)}`)
  if (within !== undefined) conditions.push(within)
  conditions.push(...createdWithin(period, (ms) => `$${values.push(ms)}`))
  const found = [`id >= $1::uuid and id <= $2::uuid`, ...conditions].join(' and ')
  return {
    sql: `select ${columns} from ${table}
          where id = any (array(select id from ${table} where ${found} order by id limit ${MOST_FOUND}))`,
    values,
  }
}

const uuidOf = (beginning: string, rest: string): string =>
  beginning.padEnd(32, rest).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
