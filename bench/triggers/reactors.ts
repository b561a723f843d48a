import { createAgent } from '../../src/agents/agents.ts'
import type { Pool } from '../../src/db/pool.ts'
import { inTransaction } from '../../src/db/transaction.ts'
import { agentInput } from '../../src/kernel/agent.ts'
import { systemActor } from '../../src/kernel/principal.ts'
import { followAgent } from '../../src/triggers/follow-agent.ts'

/** Makes reacting agents, each with a type of its own. */
export async function createReactors(
  pool: Pool,
  projectId: string,
  count: number,
  typeOf: (index: number) => string,
): Promise<void> {
  for (let index = 0; index < count; index++) {
    const input = agentInput.parse({
      name: `reactor ${index}`,
      model: { provider: 'bench', name: 'instant' },
      trigger_type: 'reaction',
      reaction_config: { objectTypes: [typeOf(index)] },
    })
    const by = { actor: systemActor, checkNames: async () => null, onChanged: followAgent }
    await inTransaction(pool, (tx) => createAgent(tx, projectId, input, by))
  }
}
