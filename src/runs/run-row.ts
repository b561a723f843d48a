import type { RowOf } from '../db/instants.ts'
import { roundCost } from '../kernel/cost.ts'
import type { Run } from '../kernel/run.ts'

/** SQL for the run that continues the run `id`. Earlier releases made more than one if the first had failed. */
export const continuationOf = (id: string): string => `select r.id from agent_runs r
  where r.base_run_id = ${id} and r.resumed_from = ${id} order by r.created_at desc, r.id desc limit 1`

/** SQL: the run is that of a leaf, and its flow run does not wait for it: the flow run has ended, or has stopped the leaf. */
export const IS_GIVEN_UP = `(agent_runs.flow_run_id is not null and (agent_runs.cancel_requested_at is not null
  or exists (select from flow_runs f where f.id = agent_runs.flow_run_id and f.completed_at is not null)))`

/** SQL: the run is neither a sub-run nor the run of a leaf. The indexes agent_runs_on_top and agent_runs_stopped say the same. */
export const ON_TOP = 'parent_run_id is null and flow_run_id is null'

/**
 * SQL: the same run continues by itself or by an answer. A supervisor's run that is unavailable continues only when somebody
 * asks for it again.
 */
const IS_WAIT = `completed_at is null and (waiting_for is not null
  or (status = 'paused' and not (agent_id is null and pause_reason = 'unavailable' and waits_for = 'human')))`

/** SQL: a run that waits with others is tried when its provider is; another one, or one that is let go, by its own time. */
const NEXT_TRY = `coalesce(ready_at, least(wake_at, (select o.next_try_at
  from provider_waits w join provider_outages o on o.provider = w.provider and o.model = w.model
  where w.id = agent_runs.id)))`

/** SQL: the wait of a run of `agent_runs`. */
export const WAIT_COLUMNS = `waiting_for, wait_message, ${IS_WAIT} as is_wait,
  case when waits_for = 'provider' and completed_at is null then ${NEXT_TRY} end as next_try_at`

export const RUN_COLUMNS = `id, project_id, agent_id, status, trigger, input, summary, error_code, error_message,
  pause_reason, step_count, max_steps, timeout, parent_run_id, resumed_from, forked_from,
  case when status in ('paused', 'failed', 'cancelled') then (${continuationOf('agent_runs.id')}) end as resumed_as,
  started_flow_run_id as flow_run_id, input_tokens, output_tokens, model,
  ${WAIT_COLUMNS}, usage_estimated, cost_usd, created_at, started_at, completed_at, duration, last_seq`

interface UsageRow {
  input_tokens: number
  output_tokens: number
  usage_estimated: boolean
  cost_usd: number | null
}

export type RunRow = RowOf<Omit<Run, 'usage' | 'trace_url'>> & UsageRow

export function toRun(row: RunRow): Run {
  const {
    input_tokens,
    output_tokens,
    usage_estimated,
    cost_usd,
    created_at,
    started_at,
    completed_at,
    next_try_at,
    ...fields
  } = row
  return {
    ...fields,
    created_at: created_at.toISOString(),
    started_at: started_at?.toISOString() ?? null,
    completed_at: completed_at?.toISOString() ?? null,
    next_try_at: next_try_at?.toISOString() ?? null,
    usage: toUsage({ input_tokens, output_tokens, usage_estimated, cost_usd }),
    trace_url: null,
  }
}

export function toUsage(row: UsageRow): Run['usage'] {
  const { input_tokens, output_tokens, usage_estimated: estimated, cost_usd: cost } = row
  const total_tokens = input_tokens + output_tokens
  return { input_tokens, output_tokens, total_tokens, estimated, cost_usd: cost === null ? null : roundCost(cost) }
}
