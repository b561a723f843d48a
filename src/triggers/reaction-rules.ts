import type { Db } from '../db/pool.ts'
import type { Agent } from '../kernel/agent.ts'

/** Replaces the agent's rules by those of its present configuration. An agent that reacts to nothing has no rules. */
export async function writeReactionRules(tx: Db, agent: Agent): Promise<void> {
  const { id, project_id, trigger_type, enabled, reaction_config: config } = agent
  await tx.query('delete from reaction_rules where agent_id = $1', [id])
  if (trigger_type !== 'reaction' || !enabled || config === null) return
  await tx.query(
    `insert into reaction_rules (agent_id, project_id, object_type, event, ignores_self, ignores_agents, is_parallel)
     select $1, $2, type, event, $5, $6, $7 from unnest($3::text[]) type, unnest($4::text[]) event
     on conflict do nothing`,
    [
      id,
      project_id,
      config.objectTypes,
      config.events,
      config.ignoreSelfTriggered,
      config.ignoreAgentTriggered,
      config.concurrencyStrategy === 'parallel',
    ],
  )
}
