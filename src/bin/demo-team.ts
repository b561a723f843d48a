// The part of the demo that works without people: a director with three subordinates gets a task, splits it and reports
// within seconds.
import type { Db } from '../db/pool.ts'
import type { Agent, AgentInput } from '../kernel/agent.ts'
import { systemActor } from '../kernel/principal.ts'
import type { TaskInput } from '../kernel/task.ts'
import { createTask } from '../tasks/tasks.ts'

const model = { provider: 'offline', name: 'offline', max_output_tokens: 4_096 }

const director: AgentInput = {
  name: 'Director',
  role: 'the director of a small team',
  prompt:
    'You lead a team. Split what you are given among those who know it, and see that nobody lacks tokens or help.',
  model,
}

/** The tokens run out in mid-task: the director is asked for more, and gives enough for the rest. */
const SCOUT_TOKENS = 228

const subordinates: readonly AgentInput[] = [
  {
    name: 'Scout',
    role: 'a researcher',
    prompt: [
      'You find things out for a team. You look them up in the graph of the project with object_search, by type or by',
      'their words, and read no more of it than you need. You say what you found and where, in short sentences, and name',
      'what you did not find instead of guessing it.',
    ].join(' '),
    model,
    tools: ['object_search'],
    competencies: ['research'],
    token_allocation: SCOUT_TOKENS,
  },
  {
    name: 'Writer',
    role: 'a writer',
    prompt: 'You write short, clear texts about what you are asked.',
    model,
    competencies: ['write', 'draft'],
  },
  {
    name: 'Checker',
    role: 'a proofreader',
    prompt: 'You check texts before they leave the house.',
    model,
    competencies: ['check', 'proofread'],
  },
]

const goal: TaskInput = {
  title: 'Tell our customers about the export',
  description: [
    '1. Research who reported trouble with the export. Look with object_search {"type":"Ticket"}.',
    '2. Draft a note to these customers.',
    '3. Proofread the note.',
  ].join('\n'),
}

export async function createTeam(
  db: Db,
  projectId: string,
  addAgent: (agent: AgentInput) => Promise<Agent>,
): Promise<void> {
  const { id } = await addAgent(director)
  for (const subordinate of subordinates) await addAgent({ ...subordinate, senior_id: id })
  await createTask(db, projectId, { ...goal, assigned_to: id }, { actor: systemActor, isAnnounced: false })
}
