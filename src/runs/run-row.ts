import { roundCost } from '../kernel/cost.ts'
import type { PauseReason, Run, RunStatus, TriggerType } from '../kernel/run.ts'

export const RUN_COLUMNS = `id, project_id, agent_id, status, trigger, input, summary, error_code, error_message,
  pause_reason, step_count, max_steps, timeout, parent_run_id, resumed_from, forked_from, input_tokens, output_tokens,
  usage_estimated, cost_usd, created_at, started_at, completed_at, duration`

export interface RunRow {
  id: string
  project_id: string
  agent_id: string | null
  status: RunStatus
  trigger: { type: TriggerType }
  input: unknown
  summary: string | null
  error_code: string | null
  error_message: string | null
  pause_reason: PauseReason | null
  step_count: number
  max_steps: number | null
  timeout: number | null
  parent_run_id: string | null
  resumed_from: string | null
  forked_from: string | null
  input_tokens: number
  output_tokens: number
  usage_estimated: boolean
  cost_usd: number | null
  created_at: Date
  started_at: Date | null
  completed_at: Date | null
  duration: number | null
}

export function toRun(row: RunRow): Run {
  const { input_tokens, output_tokens, usage_estimated, cost_usd, created_at, started_at, completed_at, ...fields } =
    row
  return {
    ...fields,
    created_at: created_at.toISOString(),
    started_at: started_at?.toISOString() ?? null,
    completed_at: completed_at?.toISOString() ?? null,
    usage: toUsage({ input_tokens, output_tokens, usage_estimated, cost_usd }),
    trace_url: null,
  }
}

/** As rows of runs and of flow runs hold it. */
export function toUsage(
  row: Pick<RunRow, 'input_tokens' | 'output_tokens' | 'usage_estimated' | 'cost_usd'>,
): Run['usage'] {
  const { input_tokens, output_tokens, usage_estimated: estimated, cost_usd: cost } = row
  const total_tokens = input_tokens + output_tokens
  return { input_tokens, output_tokens, total_tokens, estimated, cost_usd: cost === null ? null : roundCost(cost) }
}
