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

/** SQL: a JSON value as text in lower case. A value that is large, even compressed, is not read. */
export const smallText = (column: string): string =>
  `case when pg_column_size(${column}) <= 4000 then lower(${column} #>> '{}') else '' end`

/** SQL: the first characters of a text on one line; null for an empty text. */
export const oneLine = (text: string): string =>
  `nullif(btrim(regexp_replace(left(${text}, 400), '\\s+', ' ', 'g')), '')`

/** SQL: the newest rows of all statuses, merged from the index of each status. */
export function newestOf(statuses: readonly string[], select: string, limit: number): string {
  const order = `order by created_at desc, id desc limit ${limit}`
  const parts = statuses.map((status) => `(${select} and status = '${status}' ${order})`)
  return `select * from (${parts.join(' union all ')}) merged ${order}`
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
