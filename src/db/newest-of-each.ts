// The newest rows over many projects together, and the number of rows in each project.
import type { Db } from './pool.ts'

/** So many rows of each project are counted for one list. */
export const MOST_OF_EACH = 100

export interface Placed {
  project_id: string
  id: string
  at: Date
}

export interface NewestOfEach {
  /** The newest first. */
  newest: Placed[]
  /** The rows of each project that has some; more than MOST_OF_EACH stands for any number. */
  counts: ReadonlyMap<string, number>
}

/**
 * SQL for `findNewestOfEach`: the rows of the projects $1. Each part selects `id` and `at` of the rows of the project `p.id`
 * and is read by an index in the order of `at`, no further than the rows that are counted.
 */
export const inEachProject = (...parts: readonly string[]): string =>
  `select p.id as project_id, r.id, r.at from unnest($1::uuid[]) as p (id) cross join lateral (
     ${parts.map((part) => `(${part} order by at desc, id desc limit ${MOST_OF_EACH + 1})`).join('\n     union all ')}
   ) r`

/** `found` selects project_id, id and at, with the projects as $1, the limit as $2, and then the values of `more`. */
export async function findNewestOfEach(
  db: Db,
  found: string,
  { projects, limit, more = [] }: { projects: readonly string[]; limit: number; more?: readonly unknown[] },
): Promise<NewestOfEach> {
  const { rows } = await db.query<{ project_id: string; count: number; id: string | null; at: Date | null }>(
    `with found as materialized (${found})
     select c.project_id, c.count, n.id, n.at
     from (select project_id, count(*)::int as count from found group by project_id) c
     left join (select * from found order by at desc, id desc limit $2) n on n.project_id = c.project_id
     order by n.at desc nulls last, n.id desc`,
    [projects, limit, ...more],
  )
  return {
    newest: rows.flatMap(({ project_id, id, at }) => (id === null || at === null ? [] : [{ project_id, id, at }])),
    counts: new Map(rows.map(({ project_id, count }) => [project_id, count])),
  }
}

/** The rows by their ids. */
export const byId = <Row extends { id: string }>(rows: readonly Row[]): ReadonlyMap<string, Row> =>
  new Map(rows.map((row) => [row.id, row]))
