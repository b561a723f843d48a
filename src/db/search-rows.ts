// Parts of the statements of a search. Each part reads a bounded number of rows of the project, by an index.
import { cutText } from '../kernel/cut-text.ts'
import type { RankedHit, SearchKind, Sought } from '../kernel/search.ts'
import type { Db } from './pool.ts'

export interface SearchRow {
  id: string
  title: string
  detail: string | null
  status: string | null
  at: Date
  rank: number
}

/** Texts are searched in this many of the newest rows. */
export const NEWEST = 1_000

/** SQL: the rank of a row by its title, which is in lower case. */
export const rankOf = (title: string, text: string): string =>
  `case when ${title} = ${text} then 0 when starts_with(${title}, ${text}) then 1
     when strpos(${title}, ${text}) > 0 then 2 else 3 end`

/** SQL: the rank of a row that has all words, by its title and by all its texts, which are in lower case. */
export const rankOfTexts = (title: string, texts: string, text: string): string =>
  `case when ${title} = ${text} then 0 when starts_with(${title}, ${text}) then 1 when strpos(${title}, ${text}) > 0 then 2
     when strpos(${texts}, ${text}) > 0 then 3 else 4 end`

/**
 * SQL: the same for a row that has an input and no title. An input that has the text behind its beginning ranks below
 * the names that have it, because inputs are long and many.
 */
export const rankOfInput = (texts: string, text: string): string => {
  const line = `lower(${smallLine('input')})`
  return `case when ${line} = ${text} then 0 when starts_with(${line}, ${text}) then 1
     when strpos(${texts}, ${text}) > 0 then 3 else 4 end`
}

/** SQL: a JSON value as text in lower case. A value that is large, even compressed, is not read. */
export const smallText = (column: string): string =>
  `case when pg_column_size(${column}) <= 4000 then lower(left(${column} #>> '{}', 8000)) else '' end`

/** SQL: the first characters of a text on one line; null for an empty text. */
export const oneLine = (text: string): string =>
  `nullif(btrim(regexp_replace(left(${text}, 400), '\\s+', ' ', 'g')), '')`

/** SQL: the first characters of a JSON value on one line; null for an empty value and for a large one. */
export const smallLine = (column: string): string =>
  oneLine(`case when pg_column_size(${column}) <= 4000 then ${column} #>> '{}' end`)

/** Of the rows that begin with the text so many are ranked. Those that are equal to the text are read first. */
const MOST_BEGUN = 200
/** An index keeps the first hundred characters of a text, and spaces in a row are one character of the sought text. */
const SOUGHT_BEGINNING = 60

interface Begun {
  table: string
  /** The text that has an index of migration 0063. */
  column: string
  /** The text in one line; null if it is too large to be read again. */
  line: string
  where?: string
  text: string
  limit: string | number
}

/** SQL: the ids of the project's rows, however old, that are equal to the text or begin with it, with their rank. */
export function begunWith({ table, column, line, where = 'true', text, limit }: Begun): string {
  const beginning = `ltrim(regexp_replace(lower(left(${column}, 100)), '\\s+', ' ', 'g')) collate "C"`
  const sought = `left(${text}::text, ${SOUGHT_BEGINNING})`
  // The last character of Unicode is behind every continuation of the text.
  return `
  (select id, case when line = ${text} then 0 else 1 end as rank from (
     select id, created_at, lower(${line}) as line from ${table} where project_id = $1 and ${where}
       and ${beginning} >= ${sought} and ${beginning} < ${sought} || chr(1114111)
     order by ${beginning}, created_at desc limit ${MOST_BEGUN}
   ) begun where line is null or starts_with(line, ${text}) order by rank, created_at desc limit ${limit})`
}

/** SQL: the same for the inputs of ended runs. Inputs that are no texts are in no index. */
export const inputsBegunWith = (table: string, text: string, limit: number): string =>
  begunWith({
    table,
    column: `input #>> '{}'`,
    line: smallLine('input'),
    where: `completed_at is not null and jsonb_typeof(input) = 'string'`,
    text,
    limit,
  })

/** SQL: the newest rows of all statuses, merged from the index of each status. */
export const newestOf = (statuses: readonly string[], select: string, limit: number): string =>
  newestAmong(
    statuses.map((status) => `${select} and status = '${status}'`),
    limit,
  )

/** SQL: the newest rows of several statements, each of which is read by its own index. */
export function newestAmong(parts: readonly string[], limit: number): string {
  const order = `order by created_at desc, id desc limit ${limit}`
  return `select * from (${parts.map((part) => `(${part} ${order})`).join(' union all ')}) merged ${order}`
}

/** The primary keys are those of all projects, and ids begin with their time: so many of one moment are read. */
const MOST_IDS = 10_000

/**
 * SQL: the ids of the project between two values, with their rank. The primary key is read, so that no index is written
 * for this search. A beginning that so many newer ids share must be typed further.
 */
export const idsOf = (
  table: string,
  { from, to, limit, isLive = false }: { from: string; to: string; limit: string | number; isLive?: boolean },
): string => `
  (select id, (id <> ${from}::uuid)::int as rank from (
     select id, project_id ${isLive ? ', deleted_at' : ''} from ${table}
     where id between ${from}::uuid and ${to}::uuid order by id desc limit ${MOST_IDS}
   ) begun where project_id = $1 ${isLive ? 'and deleted_at is null' : ''} order by id desc limit ${limit})`

/** SQL values for the range of ids; nothing lies between them if the text begins no id. */
export const idValues = ({ ids }: Sought): [from: string | null, to: string | null] => [
  ids?.from ?? null,
  ids?.to ?? null,
]

export interface Search {
  projectId: string
  sought: Sought
  /** The most things that are returned. */
  limit: number
}

/**
 * Executes a search whose parameters are $1 the project, $2 the text, $3 its patterns, $4 the limit, $5 and $6 the range
 * of ids, and then those of `more`.
 */
export async function searchRows(
  db: Db,
  kind: SearchKind,
  sql: string,
  { projectId, sought, limit }: Search,
  more: readonly unknown[] = [],
): Promise<RankedHit[]> {
  const values = [projectId, sought.text, sought.patterns, limit, ...idValues(sought), ...more]
  const { rows } = await db.query<SearchRow>(sql, values)
  return toHits(kind, rows, limit)
}

const LONGEST_TITLE = 200
const LONGEST_DETAIL = 200

/** The best rows, each once. */
export function toHits(kind: SearchKind, rows: readonly SearchRow[], limit: number): RankedHit[] {
  const best = new Map<string, SearchRow>()
  for (const row of rows) if (row.rank < (best.get(row.id)?.rank ?? Number.POSITIVE_INFINITY)) best.set(row.id, row)
  return [...best.values()]
    .sort((a, b) => a.rank - b.rank || b.at.getTime() - a.at.getTime())
    .slice(0, limit)
    .map(({ at, title, detail, ...row }) => ({
      kind,
      ...row,
      title: cutText(title, LONGEST_TITLE, '…'),
      detail: detail === null ? null : cutText(detail, LONGEST_DETAIL, '…'),
      at: at.toISOString(),
    }))
}
