import type { Db } from '../db/pool.ts'
import type { StepUsage } from '../kernel/run.ts'

/** A function of the flow run has called the project's model: its tokens count for the run, even if the call failed. */
export async function noteAsked(db: Db, flowRunId: string, usage: StepUsage): Promise<void> {
  await db.query(
    `update flow_runs set
       asked_calls = asked_calls + 1,
       asked_input_tokens = asked_input_tokens + $2, input_tokens = input_tokens + $2,
       asked_output_tokens = asked_output_tokens + $3, output_tokens = output_tokens + $3,
       asked_cost_usd = case when $4::float8 is null then asked_cost_usd else coalesce(asked_cost_usd, 0) + $4 end,
       cost_usd = case when $4::float8 is null then cost_usd else coalesce(cost_usd, 0) + $4 end,
       usage_estimated = usage_estimated or $5
     where id = $1`,
    [flowRunId, usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.estimated],
  )
}
