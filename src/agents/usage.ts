// The tokens and the cost of a project by day (UTC) and agent, read from the sums of each day (journal/usage-days.ts).
// The runs are not read, however many there are.
import type { PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { roundCost } from '../kernel/cost.ts'
import { invalidRequest } from '../kernel/errors.ts'
import { isId, LOWEST_ID } from '../kernel/id.ts'
import { type Amounts, dayField, type UsageItem, type UsageReport, usageSources } from '../kernel/usage.ts'

export interface UsageSpan {
  /** Days such as 2026-11-16, both included. */
  from: string
  to: string
}

const MOST_AGENTS = 200

export async function readUsage(
  db: Db,
  projectId: string,
  { from, to }: UsageSpan,
  { limit, cursor }: PageQuery,
): Promise<UsageReport> {
  const after = cursor === undefined ? null : readCursor(cursor)
  const { rows } = await db.query<Sums>(READ, [projectId, from, to, limit + 1, ...placeOf(after)])
  const [sums] = rows
  if (!sums) throw new Error('the sums of a project are one row')
  const items = sums.items.slice(0, limit).map(rounded)
  const last = items.at(-1)
  return {
    from,
    to,
    totals: rounded(sums.totals),
    days: sums.days.map(rounded),
    agents: sums.agents.map(rounded),
    items,
    next_cursor: last && sums.items.length > limit ? cursorOf(last) : null,
  }
}

type Sums = Pick<UsageReport, 'totals' | 'days' | 'agents' | 'items'>

const AMOUNTS = `coalesce(sum(input_tokens), 0)::bigint as input_tokens,
  coalesce(sum(output_tokens), 0)::bigint as output_tokens,
  coalesce(sum(input_tokens + output_tokens), 0)::bigint as total_tokens, sum(cost_usd) as cost_usd`

/** The newest day of an agent may stand in both tables, if it began before usage_days was made. */
const READ = `
  with used as materialized (
    select day, agent_id, source, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
      sum(cost_usd) as cost_usd
    from (
      select day, agent_id, source, input_tokens, output_tokens, cost_usd from usage_days
      where project_id = $1 and day between $2 and $3
      union all
      select t.day, t.agent_id, 'agent', t.day_input, t.day_output, t.day_cost
      from agents a join agent_tokens t on t.agent_id = a.id
      where a.project_id = $1 and t.day between $2 and $3 and t.day_input + t.day_output > 0
      union all
      select day, null, 'supervisor', day_input, day_output, day_cost from project_tokens
      where project_id = $1 and day between $2 and $3 and day_input + day_output > 0
    ) rows group by day, agent_id, source
  ), days as (
    select to_char(d.day, 'YYYY-MM-DD') as day, ${AMOUNTS}
    from generate_series($2::date, $3::date, interval '1 day') as d (day) left join used u on u.day = d.day::date
    group by d.day
  ), makers as (
    select m.agent_id, a.name, m.source, m.input_tokens, m.output_tokens, m.total_tokens, m.cost_usd
    from (
      select agent_id, source, ${AMOUNTS} from used group by agent_id, source
      order by sum(input_tokens + output_tokens) desc, source, agent_id limit ${MOST_AGENTS}
    ) m left join agents a on a.id = m.agent_id
  ), page as (
    select to_char(p.day, 'YYYY-MM-DD') as day, p.agent_id, a.name, p.source, p.input_tokens, p.output_tokens,
      p.input_tokens + p.output_tokens as total_tokens, p.cost_usd
    from (
      select * from used
      where $5::date is null or day < $5
        or (day = $5 and (source, coalesce(agent_id, '${LOWEST_ID}')) > ($6, $7::uuid))
      order by day desc, source, agent_id nulls first limit $4
    ) p left join agents a on a.id = p.agent_id
  )
  select (select to_jsonb(t) from (select ${AMOUNTS} from used) t) as totals,
    (select coalesce(jsonb_agg(to_jsonb(d) order by day desc), '[]') from days d) as days,
    (select coalesce(jsonb_agg(to_jsonb(m) order by total_tokens desc, source, agent_id), '[]') from makers m) as agents,
    (select coalesce(jsonb_agg(to_jsonb(p) order by day desc, source, agent_id nulls first), '[]') from page p) as items`

const rounded = <Row extends Amounts>(row: Row): Row => ({
  ...row,
  cost_usd: row.cost_usd === null ? null : roundCost(row.cost_usd),
})

interface Place {
  day: string
  source: string
  agentId: string
}

const placeOf = (place: Place | null): (string | null)[] => [
  place?.day ?? null,
  place?.source ?? null,
  place?.agentId ?? null,
]

const cursorOf = ({ day, source, agent_id: agentId }: UsageItem): string =>
  Buffer.from(`${day} ${source} ${agentId ?? LOWEST_ID}`).toString('base64url')

function readCursor(cursor: string): Place {
  const [day = '', source = '', agentId = ''] = Buffer.from(cursor, 'base64url').toString('latin1').split(' ')
  const isOurs = dayField.safeParse(day).success && usageSources.some((known) => known === source) && isId(agentId)
  if (!isOurs) throw invalidRequest('cursor is not one that this list gave.')
  return { day, source, agentId }
}
