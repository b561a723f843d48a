import { agentRights } from '../agents/agent-rights.ts'
import type { Db } from '../db/pool.ts'
import { agentsOfRuns } from '../journal/agents-of-runs.ts'
import { agentDefaults } from '../kernel/agent.ts'
import { type Rights, rightsWithin } from '../kernel/rights.ts'

/**
 * The rights of a run at this moment: its agent's within those of every run above it, and within those it was started
 * with. They are locked, so that a right that was taken away is gone for all later commits. Null if the run's agent is
 * gone.
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
    // Runs below the run of a deleted agent keep the rights that they were started with.
    if (agent) bounds = rightsWithin(bounds, agent)
  }
  return rightsWithin(bounds, own)
}
