import { type AgentWrite, createAgent, findAgent } from '../agents/agents.ts'
import type { Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { oldestProject } from '../identity/projects.ts'
import type { AgentInput } from '../kernel/agent.ts'
import { MusterError } from '../kernel/errors.ts'
import type { Log } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'

/**
 * The agents of an app module are made in the oldest project, once: later changes by people stay. Without a project no
 * agent is made, and a message says so.
 */
export async function createAppAgents(
  pool: Pool,
  agents: readonly AgentInput[],
  rules: Omit<AgentWrite, 'actor'>,
  log: Log,
): Promise<void> {
  if (agents.length === 0) return
  const projectId = await oldestProject(pool)
  if (projectId === null) {
    log.warn({}, 'the app module has agents, but there is no project yet; they are made at the next start')
    return
  }
  for (const agent of agents) {
    if (await findAgent(pool, projectId, agent.name)) continue
    try {
      await inTransaction(pool, (tx) => createAgent(tx, projectId, agent, { actor: systemActor, ...rules }))
    } catch (error) {
      // Another process that starts at the same time has made the agent.
      if (error instanceof MusterError && error.code === 'CONFLICT') continue
      throw error
    }
    log.info({ agent: agent.name, project_id: projectId }, 'an agent of the app module was created')
  }
}
