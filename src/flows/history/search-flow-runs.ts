import type { Db } from '../../db/pool.ts'
import {
  idsOf,
  idValues,
  inputsBegunWith,
  NEWEST,
  newestOf,
  rankOfInput,
  type Search,
  type SearchRow,
  smallLine,
  smallText,
  toHits,
} from '../../db/search-rows.ts'
import { flowRunStatuses } from '../../kernel/flow-run.ts'
import type { RankedHit } from '../../kernel/search.ts'

/**
 * Finds flow runs by the beginning of their id, or of their input once they have ended, by the name of their flow, and by
 * their input and error; by these texts only among the newest. `flowIds` are the flows whose names were found.
 */
export async function searchFlowRuns(
  db: Db,
  { projectId, sought, limit }: Search,
  flowIds: readonly string[],
): Promise<RankedHit[]> {
  const { rows } = await db.query<SearchRow>(searchSql(limit), [
    projectId,
    sought.patterns,
    flowIds,
    ...idValues(sought),
    sought.text,
  ])
  return toHits('flow_run', rows, limit)
}

const TEXTS = `concat_ws(' ', ${smallText('input')}, lower(left(error, 1000)))`

const searchSql = (limit: number): string => `
  with found as (
    ${idsOf('flow_runs', { from: '$4', to: '$5', limit })}
    union all
    ${inputsBegunWith('flow_runs', '$6', limit)}
    union all
    select r.id, 2 from unnest($3::uuid[]) as f (id) cross join lateral (
      ${newestOf(flowRunStatuses, 'select id, created_at from flow_runs where project_id = $1 and flow_id = f.id', limit)}) r
    union all
    (select id, rank from (
      select id, created_at, ${rankOfInput(TEXTS, '$6')} as rank
      from (${newestOf(flowRunStatuses, 'select id, created_at, input, error from flow_runs where project_id = $1', NEWEST)}) newest
      where ${TEXTS} like all($2::text[])
     ) matching order by rank, created_at desc limit ${limit})
  )
  select r.id, f.rank, coalesce(w.name, r.root->>'type') as title,
    ${smallLine('r.input')} as detail,
    r.status, r.created_at as at
  from found f join flow_runs r on r.id = f.id left join flows w on w.id = r.flow_id`
