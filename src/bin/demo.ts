import { createAgent } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import { createProject } from '../identity/projects.ts'
import { systemActor } from '../kernel/principal.ts'
import { followAgent } from '../triggers/follow-agent.ts'

const model = { provider: 'offline', name: 'offline', max_output_tokens: 4_096 }

/** What a newcomer finds: a project with agents that work without a key, on the offline model. */
export async function createDemo(db: Db): Promise<void> {
  const { id } = await createProject(db, { name: 'Demo' }, systemActor)
  // They name only what is built in, and the offline provider is offered at every start.
  const by = { actor: systemActor, checkNames: async () => null, onChanged: followAgent }
  await createAgent(
    db,
    id,
    {
      name: 'Writer',
      role: 'a writer',
      prompt: 'You write short, clear texts about what you are asked.',
      model,
    },
    by,
  )
  await createAgent(
    db,
    id,
    {
      name: 'Editor',
      role: 'an editor',
      prompt: 'You improve texts in rounds: first the facts, then the wording.',
      model,
      flow_type: 'sequential',
      steps: [{ prompt: 'Check the facts of the text.' }, { prompt: 'Improve the wording of the text.' }],
    },
    by,
  )
  await createAgent(
    db,
    id,
    {
      name: 'Coordinator',
      role: 'a coordinator',
      prompt: 'You hand work to other agents with spawn_agent, and ask people when a decision is theirs.',
      model,
      tools: ['spawn_agent', 'ask_human', 'http_fetch'],
    },
    by,
  )
}
