import { agentRights } from '../agents/agent-rights.ts'
import type { Db } from '../db/pool.ts'
import { agentsOfRuns } from '../journal/agents-of-runs.ts'
import { agentDefaults } from '../kernel/agent.ts'
import { type Rights, rightsWithin } from '../kernel/rights.ts'

/**
 * The rights of a run at this moment: its agent's rights within those of every run above it, all as they stand now, and
 * within the rights it was started with. They are locked until the transaction ends, so that a right that was taken
 * away is gone for all later commits. Null if the run's own agent is gone.
 */
export async function liveRights(
  tx: Db,
  run: { runId: string; agentId: string; hasAgent: boolean; ancestors: readonly string[]; bounds: Partial<Rights> },
): Promise<Rights | null> {
  const above = run.ancestors.length === 0 ? [] : await agentsOfRuns(tx, run.ancestors)
  const rights = await agentRights(tx, [...above, run.agentId])
  const own = run.hasAgent ? rights.get(run.agentId) : agentDefaults
  if (!own) return null
  let bounds: Partial<Rights> = run.bounds
  for (const agentId of above) {
    const agent = rights.get(agentId)
    // The run of a deleted agent leaves its children the rights that they were given.
    if (agent) bounds = { ...rightsWithin(bounds, agent), mode: boundMode(bounds, agent.execution_mode) }
  }
  return rightsWithin(bounds, own)
}

/** Only the mode suggest binds the runs below. */
const boundMode = (bounds: Partial<Rights>, mode: Rights['mode']): Rights['mode'] =>
  bounds.mode === 'suggest' || mode === 'suggest' ? 'suggest' : 'execute'
