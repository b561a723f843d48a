// Recommends a pattern for a described workload, as a flow that can be started, with an estimate. Words and numbers of
// the description decide (workload-facts.ts, pattern-cues.ts), so the same words always get the same answer; or a model
// does (recommend-with-model.ts), from whose facts the flow is built in the same way.
import type { FlowNode, FunctionLeaf, Pattern } from '../kernel/flow.ts'
import { choosePattern } from './pattern-cues.ts'
import { readWorkload, type WorkloadFacts } from './workload-facts.ts'

export interface Recommendation {
  pattern: Pattern['type']
  /** Reads `{{input.items}}` or `{{input}}`; its leaves are built-in functions, to be replaced by one's own. */
  definition: FlowNode
  estimate: Estimate
  reasoning: string
}

export interface Estimate {
  workers: number
  model_calls: number
  tokens: number
  /** Milliseconds. */
  duration: number
}

export interface RecommendOptions {
  workload: string
  /** Templates of the same pattern are pointed to. */
  templates?: readonly { name: string; pattern: string }[]
  /** Names of the project's agents, for the one pattern that is made of agents. The first leads. */
  agents?: readonly string[]
  advice?: Advice | undefined
}

/** A model's understanding of the description. Facts that it leaves open are taken from the words. */
export interface Advice {
  pattern: Pattern['type']
  items?: number | null | undefined
  workers?: number | null | undefined
  steps?: readonly string[] | null | undefined
  reasoning: string
}

/** The agents that a hierarchical flow names where the project has none yet. */
export const placeholderAgents = { queen: 'queen', worker: 'worker' } as const

/** The assumptions where the description has no number. */
const ASSUMED = { items: 10, rounds: 3, steps: 3, subtasks: 3, tokensPerItem: 1_000 } as const
const ANSWER_TOKENS = 500
const CALL_MS = 5_000
const ITEMS_PER_WORKER = 100
const FEWEST_WORKERS = 4
const MOST_WORKERS = 50
const MOST_NAMED_WORKERS = 1_000
const MOST_STEPS = 20
/** The number of items of a large problem that are solved in one call. */
const PIECE_SIZE = 10
/** The number of answers that one call puts together (muster.condense). */
const CONDENSED_AT_ONCE = 12
const LONGEST_PROMPT = 2_000
const LONGEST_REASONING = 1_000

/** A plan: the flow to build, and how many calls that makes, in all and one after the other. */
interface Plan {
  definition: FlowNode
  workers: number
  calls: number
  /** The longest chain of calls that wait for each other. */
  rounds: number
}

export function recommend({ workload, templates = [], agents = [], advice }: RecommendOptions): Recommendation {
  const facts = advised(readWorkload(workload), advice)
  const { pattern, because } = advice ? { pattern: advice.pattern, because: [] } : choosePattern(facts)
  const plan = plans[pattern](facts, agents)
  const tokensPerCall = (facts.tokensPerItem ?? ASSUMED.tokensPerItem) + ANSWER_TOKENS
  const similar = templates.filter((template) => template.pattern === pattern).map(({ name }) => name)
  const sentences = [
    advice
      ? `${pattern} is what the model chose: ${sentence(advice.reasoning)}`
      : because.length > 0
        ? `${pattern} suits because ${because.join('; ')}.`
        : `${pattern}: nothing in the description says that parts of it can be done at once.`,
    numbersOf(facts, pattern),
    `Estimated at ${tokensPerCall} tokens and ${CALL_MS / 1_000} s per model call, ${plan.rounds} of ${plan.calls} calls one after the other.`,
    pattern === 'hierarchical' && agents.length === 0
      ? `It needs agents: create ${placeholderAgents.queen} and ${placeholderAgents.worker}, or put in the names of yours.`
      : '',
    similar.length > 0 ? `Templates of this pattern: ${similar.join(', ')}.` : '',
  ]
  return {
    pattern,
    definition: plan.definition,
    estimate: {
      workers: plan.workers,
      model_calls: plan.calls,
      tokens: plan.calls * tokensPerCall,
      duration: plan.rounds * CALL_MS,
    },
    reasoning: sentences.filter((sentence) => sentence !== '').join(' '),
  }
}

const advised = (facts: WorkloadFacts, advice: Advice | undefined): WorkloadFacts => ({
  ...facts,
  items: advice?.items ?? facts.items,
  workers: advice?.workers ?? facts.workers,
  steps: advice?.steps && advice.steps.length > 1 ? [...advice.steps] : facts.steps,
})

function sentence(reasoning: string): string {
  const text = reasoning.slice(0, LONGEST_REASONING).toWellFormed().trim()
  return /[.!?…]$/.test(text) ? text : `${text}.`
}

const plans: Record<Pattern['type'], (facts: WorkloadFacts, agents: readonly string[]) => Plan> = {
  sequential: (facts) => {
    const isOrdered = facts.steps.length > 1 || facts.stepCount !== null
    const prompts = isOrdered ? stepsOf(facts) : planDoCheck(promptOf(facts))
    const steps = prompts.map((prompt) => task('muster.ask', { prompt, input: '{{previous}}' }))
    return { definition: { type: 'sequential', steps }, workers: 1, calls: steps.length, rounds: steps.length }
  },

  parallel: (facts) => {
    const items = facts.items ?? facts.workers ?? ASSUMED.items
    const workers = Math.min(facts.workers ?? Math.min(items, MOST_WORKERS), MOST_NAMED_WORKERS)
    const branches = sharesOf(facts, workers)
    const definition: FlowNode = { type: 'parallel', branches, aggregate: 'concat' }
    return { definition, workers, calls: items, rounds: Math.ceil(items / workers) }
  },

  loop: (facts) => {
    const rounds = Math.min(facts.rounds ?? ASSUMED.rounds, MOST_NAMED_WORKERS)
    const definition: FlowNode = {
      type: 'loop',
      body: task('muster.ask', { prompt: promptOf(facts), input: '{{previous}}' }),
      max_iterations: rounds,
      until: task('muster.ask', {
        prompt: `Is this good enough? Begin your answer with yes or no. It was asked for: ${promptOf(facts)}`,
        input: '{{item.output}}',
      }),
    }
    return { definition, workers: 1, calls: 2 * rounds, rounds: 2 * rounds }
  },

  map_reduce: (facts) => {
    const items = itemsOf(facts)
    const workers = workersOf(facts)
    const definition: FlowNode = {
      type: 'map_reduce',
      items: '{{input.items}}',
      workers,
      map: task('muster.ask_each', { prompt: promptOf(facts, 0), items: '{{item.items}}' }),
      reduce: task('muster.condense', { prompt: promptOf(facts, -1), items: '{{item.values}}' }),
    }
    const reducing = condensingCalls(items)
    return { definition, workers, calls: items + reducing, rounds: Math.ceil(items / workers) + reducing }
  },

  pipeline: (facts) => {
    const items = itemsOf(facts)
    const stages = stepsOf(facts).map((prompt) => task('muster.ask', { prompt, input: '{{item}}' }))
    const definition: FlowNode = { type: 'pipeline', source: '{{input.items}}', stages, on_error: 'skip' }
    // One worker per stage: while the last stage has an item, the first has the one so many after it.
    return { definition, workers: stages.length, calls: items * stages.length, rounds: items + stages.length - 1 }
  },

  fork_join: (facts) => {
    const pieces = Math.ceil(itemsOf(facts) / PIECE_SIZE)
    const workers = Math.min(
      facts.workers ?? Math.max(FEWEST_WORKERS, Math.min(pieces, MOST_WORKERS)),
      MOST_NAMED_WORKERS,
    )
    const definition: FlowNode = {
      type: 'fork_join',
      problem: '{{input.items}}',
      should_split: task('muster.is_larger', { of: '{{item}}', than: PIECE_SIZE }),
      split: task('muster.chunk', { of: '{{item}}', size: PIECE_SIZE }),
      solve: task('muster.ask', { prompt: promptOf(facts), input: '{{item}}' }),
      join: task('muster.condense', {
        prompt: `Join these results into one. It was asked for: ${promptOf(facts)}`,
        items: '{{item}}',
      }),
      workers,
      stealing: true,
    }
    const joining = pieces > 1 ? condensingCalls(pieces) : 0
    return { definition, workers, calls: pieces + joining, rounds: Math.ceil(pieces / workers) + joining }
  },

  hierarchical: (facts, agents) => {
    const workers = Math.min(facts.workers ?? ASSUMED.subtasks, MOST_NAMED_WORKERS)
    const [queen = placeholderAgents.queen, ...others] = agents
    const team = others.length > 0 ? others : [agents[0] ?? placeholderAgents.worker]
    const definition: FlowNode = {
      type: 'hierarchical',
      queen,
      // The same agent may work several times at once.
      workers: Array.from({ length: workers }, (_, place) => team[place % team.length] ?? queen),
      goal: promptOf(facts),
    }
    // She plans, they work at once, she judges.
    return { definition, workers, calls: workers + 2, rounds: 3 }
  },

  adaptive: (facts) => {
    const items = itemsOf(facts)
    const workers = workersOf(facts)
    const tasks = sharesOf(facts, Math.max(workers, Math.min(items, MOST_NAMED_WORKERS)))
    const definition: FlowNode = { type: 'adaptive', topology: 'hierarchical', workers, tasks, switch: true }
    return { definition, workers, calls: items, rounds: Math.ceil(items / workers) }
  },
}

const task = (name: string, args: Readonly<Record<string, unknown>>): FunctionLeaf => ({
  type: 'task',
  function: name,
  args,
})

/** Each leaf works on one of so many equal shares of the items. */
const sharesOf = (facts: WorkloadFacts, count: number): FunctionLeaf[] =>
  Array.from({ length: count }, (_, place) =>
    task('muster.ask_each', { prompt: promptOf(facts), items: '{{input.items}}', share: { of: count, place } }),
  )

/** Nobody asks for more workers than there are items. */
const itemsOf = ({ items, workers }: WorkloadFacts): number => items ?? Math.max(ASSUMED.items, workers ?? 0)

/** A hundred items each, but a few workers for few items too, and not so many that a model's limits are all they meet. */
function workersOf(facts: WorkloadFacts): number {
  if (facts.workers !== null) return Math.min(facts.workers, MOST_NAMED_WORKERS)
  const items = itemsOf(facts)
  return Math.min(items, MOST_WORKERS, Math.max(FEWEST_WORKERS, Math.ceil(items / ITEMS_PER_WORKER)))
}

/** The steps that the description names; where it gives no names, each gets the whole description and its place. */
function stepsOf(facts: WorkloadFacts): string[] {
  const { steps, stepCount } = facts
  if (steps.length > 1) return steps.slice(0, MOST_STEPS).map(asPrompt)
  const count = Math.min(stepCount ?? ASSUMED.steps, MOST_STEPS)
  return Array.from({ length: count }, (_, place) => `Do step ${place + 1} of ${count} of this: ${promptOf(facts)}`)
}

const planDoCheck = (what: string): string[] => [
  `Plan how this is best done: ${what}`,
  `Do this by the plan: ${what}`,
  `Check the result and mend what is wrong with it. It was asked for: ${what}`,
]

/** The words of one step where there are several, else of all. */
const promptOf = ({ text, steps }: WorkloadFacts, step?: number): string =>
  asPrompt((step !== undefined && steps.length > 1 && steps.at(step)) || text || 'Do the work.')

/** Braces of the description must not become templates of the definition. */
const asPrompt = (text: string): string => text.slice(0, LONGEST_PROMPT).toWellFormed().replaceAll('{{', '{ {')

function condensingCalls(answers: number): number {
  let calls = 0
  for (let left = answers; left > 1 || calls === 0; ) {
    left = Math.ceil(left / CONDENSED_AT_ONCE)
    calls += left
  }
  return calls
}

/** Says which of the numbers that count for the pattern were found, and which are only assumed. */
function numbersOf({ items, rounds, workers }: WorkloadFacts, pattern: Pattern['type']): string {
  const given = workers === null ? '' : `, ${workers} workers`
  switch (pattern) {
    case 'sequential':
      return ''
    case 'hierarchical':
      return workers === null ? `Assumes ${ASSUMED.subtasks} subtasks.` : `Counts ${workers} workers.`
    case 'loop':
      return rounds === null ? `Assumes ${ASSUMED.rounds} rounds.` : `Counts ${rounds} rounds.`
    case 'parallel':
      if (items === null && workers !== null) return `Counts ${workers} workers, with one thing each.`
      return items === null ? `Assumes ${ASSUMED.items} items.` : `Counts ${items} items${given}.`
    default:
      return items === null
        ? `Assumes ${Math.max(ASSUMED.items, workers ?? 0)} items${given}.`
        : `Counts ${items} items${given}.`
  }
}
