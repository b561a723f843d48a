import { createAgent } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import { builtInDescriptions } from '../flows/definition/built-in-functions.ts'
import { createFlow } from '../flows/definition/flows.ts'
import { startFlow } from '../flows/execution/start.ts'
import { builtInPatterns } from '../flows/machine/built-in-patterns.ts'
import { swarmTest } from '../flows/templates/swarm-test.ts'
import { createProject } from '../identity/projects.ts'
import type { Agent, AgentInput } from '../kernel/agent.ts'
import type { Log } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import { defaultSettings } from '../kernel/project.ts'
import { byPerson } from '../objects/author.ts'
import { relate } from '../objects/relationships.ts'
import type { ObjectWriter } from '../objects/write-objects.ts'
import { createShop } from './demo-shop.ts'
import { createTeam } from './demo-team.ts'
import { followAgents } from './run-services.ts'

const model = { provider: 'offline', name: 'offline', max_output_tokens: 4_096 }

/** The launch takes far longer than an estimate from its tree alone, and nothing is wrong with it. */
const settings = { alert_factor: 10 }

/** The project that a newcomer finds. Its agents need no key, because they use the offline model. */
export async function createDemo(db: Db, writer: ObjectWriter, log: Log): Promise<void> {
  const { id } = await createProject(db, { name: 'Demo', settings }, systemActor)
  // The agents name only built-in tools, and the offline provider is offered at every start.
  const by = { actor: systemActor, checkNames: async () => null, onChanged: followAgents(log) }
  const addAgent = (agent: AgentInput): Promise<Agent> => createAgent(db, id, agent, by)
  await createTeam(db, id, addAgent)
  await addAgent(editor)
  await addAgent(coordinator)
  await addAgent(triage)
  await createTicket(db, writer, id)
  await createFirstFlow(db, id)
  await createShop(db, id, addAgent)
}

const editor: AgentInput = {
  name: 'Editor',
  role: 'an editor',
  prompt: 'You improve texts in rounds: first the facts, then the wording.',
  model,
  flow_type: 'sequential',
  steps: [{ prompt: 'Check the facts of the text.' }, { prompt: 'Improve the wording of the text.' }],
}

const coordinator: AgentInput = {
  name: 'Coordinator',
  role: 'a coordinator',
  prompt: 'You hand work to other agents with spawn_agent, and ask people when a decision is theirs.',
  model,
  tools: ['spawn_agent', 'ask_human', 'http_fetch'],
}

/** An agent that reacts to new tickets, may only suggest, and may change only tickets. */
const triage: AgentInput = {
  name: 'Triage',
  role: 'a support lead',
  prompt: `You look at each new ticket and suggest what should become of it, with object_update ${JSON.stringify({
    properties: { status: 'triaged', priority: 'high' },
    reasoning: 'A customer cannot work until this is fixed.',
  })} or whatever fits better.`,
  model,
  tools: ['object_update'],
  trigger_type: 'reaction',
  reaction_config: {
    objectTypes: ['Ticket'],
    events: ['created'],
    ignoreSelfTriggered: true,
    ignoreAgentTriggered: false,
    concurrencyStrategy: 'skip',
  },
  execution_mode: 'suggest',
  capabilities: {
    canCreateObjects: false,
    canUpdateObjects: true,
    canDeleteObjects: false,
    allowedObjectTypes: ['Ticket'],
  },
}

/** A first ticket, so that a suggestion waits in the inbox when a newcomer looks. */
async function createTicket(db: Db, writer: ObjectWriter, projectId: string): Promise<void> {
  const author = byPerson(systemActor)
  const create = async (type: string, key: string, properties: Record<string, unknown>): Promise<string> => {
    const written = await writer.writeIn(db, { projectId, change: { op: 'create', type, key, properties }, author })
    if (written.kind !== 'written') throw new Error(`the demo's ${key} could not be created: ${written.kind}`)
    return written.object.id
  }
  const toId = await create('Customer', 'ada', { name: 'Ada Lovelace', email: 'ada@example.com' })
  const ticket = { title: 'The monthly export is empty', status: 'new', priority: 'normal' }
  const fromId = await create('Ticket', 'T-1', ticket)
  await relate(db, { projectId, change: { op: 'relate', type: 'reported_by', fromId, toId, properties: {} }, author })
}

/** A flow with one run, on the project's default model, so that the list of flows is not empty. */
async function createFirstFlow(db: Db, projectId: string): Promise<void> {
  const { title: name, root, example } = swarmTest
  const functions = new Set(Object.keys(builtInDescriptions))
  const rules = { functions, patterns: builtInPatterns }
  const { id: flowId } = await createFlow(db, projectId, { name, root }, { actor: systemActor, ...rules })
  const limits = { timeoutMs: defaultSettings.flow_timeout, workers: null }
  const run = { projectId, flowId, root, input: example.input, ...limits }
  await startFlow(db, run, systemActor, builtInPatterns)
}
