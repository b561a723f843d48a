// The tokens of a project by day (UTC) and agent. A call counts once, with the transaction that charges for it. The
// newest day of an agent stands in its row of agent_tokens, which an append writes anyway; that of the runs without an
// agent stands in project_tokens. When a call of another day comes, a trigger moves the day to usage_days.
//
// Tried and rejected: a row of usage_days for each agent in every append (5 % of an append for one agent, 18 % for
// fifty); sums over the runs at each request (a second for a million runs, and the runs of the past may be removed).
import type { Db } from '../db/pool.ts'
import type { StepUsage } from '../kernel/run.ts'

export const DAY_COLUMNS = 'day, day_input, day_output, day_cost'

/** SQL: the values of these columns, over rows with the tokens and the cost of calls. */
export const SUMS_OF_DAY = `(muster.now() at time zone 'UTC')::date, sum(input_tokens), sum(output_tokens), sum(cost)`

/** SQL: adds the new values to those of the row `t`, or begins the next day. */
export const ADD_TO_DAY = `
  day = excluded.day,
  day_input = excluded.day_input + case when t.day = excluded.day then t.day_input else 0 end,
  day_output = excluded.day_output + case when t.day = excluded.day then t.day_output else 0 end,
  day_cost = case when t.day is distinct from excluded.day then excluded.day_cost
    when excluded.day_cost is null then t.day_cost else coalesce(t.day_cost, 0) + excluded.day_cost end`

/**
 * Counts a call that no run made. The caller has locked the tokens of the project's month (month.ts) in the same
 * transaction, so nobody waits for this row alone.
 */
export async function noteUsage(
  tx: Db,
  projectId: string,
  source: 'function' | 'other',
  { input_tokens, output_tokens, cost_usd }: StepUsage,
): Promise<void> {
  if (input_tokens + output_tokens <= 0) return
  await tx.query(`select muster.add_usage_of_day($1, (muster.now() at time zone 'UTC')::date, null, $2, $3, $4, $5)`, [
    projectId,
    source,
    input_tokens,
    output_tokens,
    cost_usd,
  ])
}

/** Removes rows of a deleted project, a batch at a time. Returns their number. */
export async function removeUsageOf(tx: Db, projectId: string, atOnce: number): Promise<number> {
  const { rowCount } = await tx.query(
    `delete from usage_days where ctid = any(array(
       select ctid from usage_days where project_id = $1 limit $2 for update skip locked))`,
    [projectId, atOnce],
  )
  return rowCount ?? 0
}
