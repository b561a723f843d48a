import type { Db } from '../db/pool.ts'
import {
  idsOf,
  idValues,
  inputsBegunWith,
  NEWEST,
  newestOf,
  oneLine,
  rankOfInput,
  type Search,
  type SearchRow,
  smallLine,
  smallText,
  toHits,
} from '../db/search-rows.ts'
import { runStatuses } from '../kernel/run.ts'
import type { RankedHit } from '../kernel/search.ts'

/**
 * Finds runs by the beginning of their id, or of their input once they have ended, by the name of their agent, and by
 * their input, summary and error; by these texts only among the newest. `agentIds` are the agents whose names were found.
 */
export async function searchRuns(
  db: Db,
  { projectId, sought, limit }: Search,
  agentIds: readonly string[],
): Promise<RankedHit[]> {
  const { rows } = await db.query<SearchRow>(searchSql(limit), [
    projectId,
    sought.patterns,
    agentIds,
    ...idValues(sought),
    sought.text,
  ])
  return toHits('run', rows, limit)
}

/** SQL: the texts of a run that are searched, in lower case. */
export const TEXTS = `concat_ws(' ', ${smallText('input')}, lower(left(summary, 4000)), lower(left(error_message, 1000)))`

const searchSql = (limit: number): string => `
  with found as (
    ${idsOf('agent_runs', { from: '$4', to: '$5', limit })}
    union all
    ${inputsBegunWith('agent_runs', '$6', limit)}
    union all
    select r.id, 2 from unnest($3::uuid[]) as a (id) cross join lateral (
      ${newestOf(runStatuses, 'select id, created_at from agent_runs where project_id = $1 and agent_id = a.id', limit)}) r
    union all
    (select id, rank from (
      select id, created_at, ${rankOfInput(TEXTS, '$6')} as rank
      from (${newestOf(runStatuses, 'select id, created_at, input, summary, error_message from agent_runs where project_id = $1', NEWEST)}) newest
      where ${TEXTS} like all($2::text[])
     ) matching order by rank, created_at desc limit ${limit})
  )
  select r.id, f.rank, coalesce(a.name, r.part->>'node', 'supervisor') as title,
    coalesce(${smallLine('r.input')}, ${oneLine('r.summary')}) as detail,
    r.status, r.created_at as at
  from found f join agent_runs r on r.id = f.id left join agents a on a.id = r.agent_id`
