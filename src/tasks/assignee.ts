import { findAgent } from '../agents/agents.ts'
import { holdAgents } from '../agents/seniors.ts'
import type { Db } from '../db/pool.ts'
import { invalidRequest } from '../kernel/errors.ts'

/** The agent cannot be deleted until the transaction ends: a deletion hands over only the tasks that are committed. */
export async function requireAssignee(tx: Db, projectId: string, agentId: string): Promise<void> {
  const agent = await findAgent(tx, projectId, agentId)
  // The agent is found by its id; an agent whose name looks like an id is not meant.
  const isThere = agent?.id === agentId.toLowerCase() && (await holdAgents(tx, projectId, [agent.id])).length === 1
  if (!isThere) throw invalidRequest('assigned_to names no agent of this project.')
}
