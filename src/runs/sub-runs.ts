import { listPage } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { selectByStatus } from '../db/select-by-status.ts'
import { roundCost } from '../kernel/cost.ts'
import { type Run, runStatuses } from '../kernel/run.ts'

export interface SubRun extends Pick<Run, 'id' | 'agent_id' | 'status' | 'pause_reason' | 'step_count' | 'duration'> {
  /** The part of a supervisor system that the sub-run plays; null for the run of an agent. */
  node: string | null
  total_tokens: number
  cost_usd: number | null
  /** The beginning of the sub-run's answer, or of its error. */
  said: string | null
}

const LONGEST_SAID = 600
const COLUMNS = `id, created_at, agent_id, status, pause_reason, step_count, duration, trigger->>'node' as node,
  input_tokens + output_tokens as total_tokens, cost_usd,
  left(coalesce(nullif(summary, ''), error_message), ${LONGEST_SAID}) as said`

export async function newestSubRuns(
  db: Db,
  { projectId, runId, limit }: { projectId: string; runId: string; limit: number },
): Promise<{ subRuns: SubRun[]; hasMore: boolean }> {
  const { items, next_cursor } = await listPage<SubRun & { created_at: Date }, SubRun>(db, {
    ...selectByStatus({
      select: `select ${COLUMNS} from agent_runs`,
      by: { parent_run_id: runId },
      also: { project_id: projectId },
      among: { status: runStatuses },
    }),
    query: { limit },
    toItem: ({ created_at: _, cost_usd: cost, ...row }) => ({
      ...row,
      cost_usd: cost === null ? null : roundCost(cost),
    }),
  })
  return { subRuns: items.toReversed(), hasMore: next_cursor !== null }
}
