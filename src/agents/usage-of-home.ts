import type { Db } from '../db/pool.ts'
import { roundCost } from '../kernel/cost.ts'
import type { AmountsOfHome, TwoDays } from '../kernel/home.ts'

const NOTHING: AmountsOfHome = { total_tokens: 0, cost_usd: null }

/** The tokens and the cost of two days (UTC) in each project; see usage.ts for the tables. */
export async function readTwoDays(
  db: Db,
  projects: readonly string[],
  { today, yesterday }: Record<keyof TwoDays, string>,
): Promise<(projectId: string) => TwoDays> {
  const { rows } = await db.query<{ place: string } & AmountsOfHome>(
    `select project_id || ' ' || day as place, sum(tokens)::bigint as total_tokens, sum(cost) as cost_usd
     from (
       select u.* from unnest($1::uuid[]) as p (id) cross join lateral (
         select project_id, day, input_tokens + output_tokens as tokens, cost_usd as cost from usage_days
         where project_id = p.id and day between $2 and $3) u
       union all
       select a.project_id, t.day, t.day_input + t.day_output, t.day_cost
       from agents a join agent_tokens t on t.agent_id = a.id
       where a.project_id = any($1::uuid[]) and t.day between $2 and $3 and t.day_input + t.day_output > 0
       union all
       select project_id, day, day_input + day_output, day_cost from project_tokens
       where project_id = any($1::uuid[]) and day between $2 and $3 and day_input + day_output > 0
     ) used group by project_id, day`,
    [projects, yesterday, today],
  )
  const spent = new Map(
    rows.map(({ place, total_tokens, cost_usd: cost }) => [
      place,
      { total_tokens, cost_usd: cost === null ? null : roundCost(cost) },
    ]),
  )
  const on = (projectId: string, day: string): AmountsOfHome => spent.get(`${projectId} ${day}`) ?? NOTHING
  return (projectId) => ({ today: on(projectId, today), yesterday: on(projectId, yesterday) })
}
