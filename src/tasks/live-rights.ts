import { agentRights } from '../agents/agent-rights.ts'
import type { Db } from '../db/pool.ts'
import { agentsOfRuns } from '../journal/agents-of-runs.ts'
import { type Rights, rightsWithin } from '../kernel/rights.ts'

/**
 * What a run may do at this moment: its agent's rights within those of every run above it, all as they stand now, and
 * within what it was started with. Held until the transaction ends, so that a right that was taken away is gone for
 * whatever is committed afterwards. Null where its own agent is gone.
 */
export async function liveRights(
  tx: Db,
  run: { runId: string; agentId: string; ancestors: readonly string[]; bounds: Partial<Rights> },
): Promise<Rights | null> {
  const above = run.ancestors.length === 0 ? [] : await agentsOfRuns(tx, run.ancestors)
  const rights = await agentRights(tx, [...above, run.agentId])
  const own = rights.get(run.agentId)
  if (!own) return null
  let bounds: Partial<Rights> = run.bounds
  for (const agentId of above) {
    const agent = rights.get(agentId)
    // A run of an agent that was deleted leaves its children what they were given.
    if (agent) bounds = { ...rightsWithin(bounds, agent), mode: boundMode(bounds, agent.execution_mode) }
  }
  return rightsWithin(bounds, own)
}

/** Only suggesting binds those below. */
const boundMode = (bounds: Partial<Rights>, mode: Rights['mode']): Rights['mode'] =>
  bounds.mode === 'suggest' || mode === 'suggest' ? 'suggest' : 'execute'
