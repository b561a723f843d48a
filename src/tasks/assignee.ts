import { findAgent } from '../agents/agents.ts'
import { holdAgents } from '../agents/seniors.ts'
import type { Db } from '../db/pool.ts'
import { invalidRequest } from '../kernel/errors.ts'

/** The agent is not deleted until the transaction ends: a deletion hands over the tasks that it sees. */
export async function requireAssignee(tx: Db, projectId: string, agentId: string): Promise<void> {
  const agent = await findAgent(tx, projectId, agentId)
  // Found by its id, not by a name that looks like one.
  const isThere = agent?.id === agentId.toLowerCase() && (await holdAgents(tx, projectId, [agent.id])).length === 1
  if (!isThere) throw invalidRequest('assigned_to names no agent of this project.')
}
