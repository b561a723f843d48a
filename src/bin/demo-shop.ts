// The part of the demo that people can watch: a small shop whose agents work at the pace of a reader. A queen plans a
// launch, again every few minutes by her schedule; one agent repeats a failing call until the guard stops it, one has
// nearly used up its tokens, and one has a question for people.
import type { Db } from '../db/pool.ts'
import { createEval } from '../evals/create-eval.ts'
import { defineFlow } from '../flows/definition/app-module.ts'
import { builtInDescriptions } from '../flows/definition/built-in-functions.ts'
import { createFlow } from '../flows/definition/flows.ts'
import { builtInPatterns } from '../flows/machine/built-in-patterns.ts'
import type { Agent, AgentInput } from '../kernel/agent.ts'
import { systemActor } from '../kernel/principal.ts'
import { startRun } from '../runs/start.ts'

const instant = { provider: 'offline', name: 'offline', max_output_tokens: 4_096 }
const paced = { provider: 'offline', name: 'paced', max_output_tokens: 4_096 }
const LAUNCH = 'Product launch'

/** The queen and those who carry out her plan. */
const launchTeam: readonly AgentInput[] = [
  {
    name: 'Queen',
    role: 'a lead',
    prompt: 'You break goals down, hand out the parts and judge the results.',
    model: instant,
  },
  { name: 'Analyst', role: 'a market analyst', prompt: 'You find out who buys what, and why.', model: paced },
  { name: 'Copywriter', role: 'a copywriter', prompt: 'You write texts that people like to read.', model: paced },
]

/** Most of it waits for the part before, so that the work can be watched for more than a minute. */
const launch = defineFlow({
  type: 'hierarchical',
  queen: 'Queen',
  workers: ['Analyst', 'Copywriter', 'Copywriter'],
  goal: [
    'Launch our new notebooks:',
    '- Research who buys notebooks, what they pay and where they look for them.',
    '- Compare three competitors by their prices, their paper and their delivery.',
    '- Then draft a page for the shop with a headline, three reasons and the price.',
    '- Then draft a letter to our customers that offers them the first hundred.',
    '- Then translate the letter into French and keep its friendly tone.',
    '- Then translate the page into French with the names of all colours.',
    '- Then proofread the page and both letters line by line.',
    '- Then plan the posts for the week of the launch, one for each day.',
    '- Then write the posts of the first three days in our own voice.',
    '- Then prepare answers to the questions that customers will have about paper and size.',
    '- Then plan the stock of the first month week by week.',
    '- Then sum up the costs of the launch and the risks that are left.',
  ].join('\n'),
})

/** Starts the flow every four minutes. Missed times are not made up for. */
const planner: AgentInput = {
  name: 'Launch planner',
  role: 'a planner',
  prompt: 'You start the launch of a product.',
  model: paced,
  flow_type: 'flow',
  flow: LAUNCH,
  trigger_type: 'schedule',
  cron_schedule: '*/4 * * * *',
  catch_up: 'skip',
}

/** A webhook starts it. The page of the agent makes the address and its secret. */
const intake: AgentInput = {
  name: 'Order intake',
  role: 'a clerk',
  prompt: 'You sum up each order that arrives, in one sentence.',
  model: paced,
  trigger_type: 'webhook',
}

/** The object does not exist, so the call fails each time, and the guard against doom loops ends the run. */
const watcher: AgentInput = {
  name: 'Stock watcher',
  role: 'a warehouse clerk',
  prompt: 'You read delivery notes.',
  model: paced,
  tools: ['object_get'],
}
const WATCH = 'Read the delivery note with object_get {"id": "00000000-0000-7000-8000-000000000000"} until it works.'

/** Its first run uses more than nine tenths of its tokens, and less than all of them. */
const bookkeeper: AgentInput = {
  name: 'Bookkeeper',
  role: 'a bookkeeper',
  prompt: 'You keep the books in order.',
  model: paced,
  token_allocation: 68,
}
const BOOKS = 'List the invoices of this month that are still open, and say which of them is the oldest.'

const buyer: AgentInput = {
  name: 'Buyer',
  role: 'a buyer',
  prompt: 'You order what the shop needs, and ask people before you spend much.',
  model: paced,
  tools: ['ask_human'],
}
const ORDER = 'Should we order 40 more notebooks at 3 dollars each? Ask a human.'

const CASES = [
  { task: 'Compare green tea with black coffee.', expect: { contains: 'tea' } },
  { task: 'Write a line about the export of tickets.', expect: { contains: 'export' } },
  { task: 'List three reasons to visit Lisbon in spring.', expect: { contains: 'Lisbon' } },
]

export async function createShop(
  db: Db,
  projectId: string,
  addAgent: (agent: AgentInput) => Promise<Agent>,
): Promise<void> {
  for (const agent of launchTeam) await addAgent(agent)
  const rules = { functions: new Set(Object.keys(builtInDescriptions)), patterns: builtInPatterns }
  await createFlow(db, projectId, { name: LAUNCH, root: launch }, { actor: systemActor, ...rules })
  await addAgent(intake)
  const firstRuns: [AgentInput, unknown][] = [
    [planner, null],
    [watcher, WATCH],
    [bookkeeper, BOOKS],
    [buyer, ORDER],
  ]
  for (const [agent, input] of firstRuns) {
    const { id } = await addAgent(agent)
    await startRun(db, projectId, id, { input, trigger: { type: 'manual' } })
  }
  await createEval(
    db,
    projectId,
    { name: 'Blue against green', variants: ['blue', 'green'], cases: CASES },
    systemActor,
  )
}
