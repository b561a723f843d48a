type Ids = Readonly<Record<string, string | undefined>>

/** Instants between which rows were created: at or after the first, before the second. */
export interface Period {
  from?: string | undefined
  to?: string | undefined
}

interface Selection {
  /** Values of the statement around this one, which come first. */
  given?: readonly unknown[]
  /** A select statement without a condition. */
  select: string
  /** The columns that an index begins with. */
  by: Ids
  /** Further columns, which only filter the rows. */
  also?: Ids
  /** A condition of the index itself, without values. */
  within?: string | undefined
  /** Columns with the few values that are asked for; each value is a word of Muster's own schemas. */
  among: Readonly<Record<string, readonly string[]>>
  period?: Period
}

/**
 * SQL for `listPage` over an index of (…by, …among, created_at desc, id desc): one part for each combination of words,
 * merged by age. So lists with and without a status use the same index, and the rarity of a status does not matter.
 */
export function selectByStatus({ given = [], select, by, also = {}, within, among, period = {} }: Selection): {
  sql: string[]
  values: unknown[]
} {
  const values = [...given]
  const conditions = (ids: Ids, operator: string): string[] =>
    Object.entries(ids).flatMap(([column, value]) =>
      value === undefined ? [] : [`${column} ${operator} $${values.push(value)}::uuid`],
    )
  // `is not distinct from` uses no index, so the planner cannot choose a wrong one in the hope to meet such rows soon.
  const always = [
    ...conditions(by, '='),
    ...conditions(also, 'is not distinct from'),
    ...(within ? [within] : []),
    ...createdWithin(period, (instant) => `$${values.push(instant)}`),
  ]
  const sql = combinations(Object.entries(among)).map(
    (words) => `${select} where ${[...always, ...words].join(' and ')}`,
  )
  return { sql, values }
}

/** The milliseconds are counted here, because PostgreSQL does not read each year that JavaScript does. */
export function createdWithin({ from, to }: Period, bind: (ms: number) => string): string[] {
  const instant = (text: string): string => `timestamptz 'epoch' + ${bind(Date.parse(text))}::float8 * interval '1 ms'`
  return [
    ...(from === undefined ? [] : [`created_at >= ${instant(from)}`]),
    ...(to === undefined ? [] : [`created_at < ${instant(to)}`]),
  ]
}

function combinations(among: readonly (readonly [column: string, words: readonly string[]])[]): string[][] {
  const [first, ...rest] = among
  if (!first) return [[]]
  const [column, words] = first
  return words.flatMap((word) => combinations(rest).map((others) => [`${column} = '${plain(word)}'`, ...others]))
}

/** The words come from a schema, so any other word is a bug of the caller, not an injection. */
function plain(word: string): string {
  if (!/^[a-z_-]+$/.test(word)) throw new Error(`${word} is not a word of a schema`)
  return word
}
