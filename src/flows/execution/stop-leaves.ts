// The end of leaves whose results nobody waits for: their functions, their handouts and their runs.
import type { Db } from '../../db/pool.ts'
import { type FlowLeaf, hasAgentStage } from '../machine/flow-leaf.ts'
import { isAgentLeaf, runIdsOf } from './agent-leaves.ts'
import type { ClaimedFlow } from './claim.ts'
import { withdrawLeaves } from './handouts.ts'
import type { FlowDeps, OwnedFlow } from './owned-flow.ts'
import { attemptKey } from './state.ts'

export async function stopLeaves(owned: OwnedFlow, leaves: readonly FlowLeaf[]): Promise<void> {
  const { state, flow, deps, signals, handedOut, waits } = owned
  for (const { id } of leaves) signals.get(id)?.abort()
  // A pipeline that has been stopped queues no further run. The runs that it queues at this moment are cancelled, too.
  await waits.allQueued()
  const begun = leaves.filter((leaf) => state.begun.has(attemptKey(leaf)))
  await cancelLeafRuns(deps, flow, begun)
  const handed = leaves.map(({ id }) => id).filter((id) => handedOut.delete(id))
  if (handed.length > 0) await withdrawLeaves(deps.pool, flow.id, handed)
}

/** Cancels the open runs of these leaves. The ids of an agent leaf's runs are known; those of a stage's are looked up. */
export async function cancelLeafRuns(deps: FlowDeps, flow: ClaimedFlow, leaves: readonly FlowLeaf[]): Promise<void> {
  const runIds = leaves.filter(isAgentLeaf).flatMap((leaf) => runIdsOf(flow.id, leaf))
  if (runIds.length > 0) await deps.cancelRuns(flow.project_id, runIds)
  const withStages = leaves.filter(hasAgentStage).map(({ id }) => id)
  if (withStages.length > 0) await cancelOpenRuns(deps, flow, withStages)
}

/** Cancels the open runs of all leaves. */
export const cancelAllRuns = (deps: FlowDeps, flow: ClaimedFlow): Promise<void> => cancelOpenRuns(deps, flow, null)

const RUNS_AT_ONCE = 500

async function cancelOpenRuns(
  { pool, cancelRuns }: FlowDeps,
  { id, project_id: projectId }: ClaimedFlow,
  leafIds: readonly string[] | null,
): Promise<void> {
  for (;;) {
    const runIds = await openRuns(pool, id, leafIds)
    if (runIds.length === 0) return
    await cancelRuns(projectId, runIds)
  }
}

async function openRuns(db: Db, flowRunId: string, leafIds: readonly string[] | null): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select id from agent_runs
     where flow_run_id = $1 and status in ('queued', 'running', 'paused') and completed_at is null
       and cancel_requested_at is null and ($2::text[] is null or trigger->>'task_id' = any($2))
     limit ${RUNS_AT_ONCE}`,
    [flowRunId, leafIds],
  )
  return rows.map((row) => row.id)
}
