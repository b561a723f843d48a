import { findAgent } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import { invalidRequest } from '../kernel/errors.ts'

export async function requireAssignee(db: Db, projectId: string, agentId: string): Promise<void> {
  const agent = await findAgent(db, projectId, agentId)
  // Found by its id, not by a name that looks like one.
  if (agent?.id !== agentId.toLowerCase()) throw invalidRequest('assigned_to names no agent of this project.')
}
