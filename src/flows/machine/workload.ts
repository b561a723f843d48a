// The facts that the description of a workload gives, and the parts from which patterns make a flow for it. Its leaves
// are built-in functions, to be replaced by one's own.
import { cutText } from '../../kernel/cut-text.ts'
import type { FlowNode, FunctionLeaf } from '../../kernel/flow.ts'
import { callOf } from './move.ts'

export interface WorkloadFacts {
  text: string
  /** The number of things to be worked on; null if the description gives no number. */
  items: number | null
  workers: number | null
  rounds: number | null
  /** The steps to be done one after the other, in the words of the description. */
  steps: string[]
  /** The number of steps that the description gives; null if it gives none. */
  stepCount: number | null
  /** The size of one item; null if the description gives no number. */
  tokensPerItem: number | null
}

/** The workloads that a pattern suits, and the flow it makes for one. */
export interface Suits {
  /** Ends the line "- parallel: …", by which a model chooses. */
  summary: string
  /** Among patterns that suit equally well the lowest rank is taken; if no pattern suits, the highest rank. */
  rank: number
  cues: readonly Cue[]
  /** `agents`: names of the project's agents. */
  plan(facts: WorkloadFacts, agents: readonly string[]): Plan
  /** Says which numbers were found in the description and which are assumed. */
  counts?(facts: WorkloadFacts): string
}

/** Something in a description that speaks for a pattern. */
interface Cue {
  weight: number
  speaks: RegExp | ((facts: WorkloadFacts) => boolean)
  /** Ends the sentence "It suits because …". */
  because: string
}

/** The flow to build, and the number of its model calls, in all and one after the other. */
interface Plan {
  definition: FlowNode
  workers: number
  calls: number
  /** The longest chain of calls that wait for each other. */
  rounds: number
  /** A sentence for the reader. */
  note?: string
}

/** The assumed numbers, for descriptions without a number. */
export const ASSUMED = { items: 10, rounds: 3, steps: 3, subtasks: 3, tokensPerItem: 1_000 } as const
export const MODEL_CALL_MS = 5_000
/** The number of answers that one call puts together (muster.condense). */
export const CONDENSED_AT_ONCE = 12
export const FEWEST_WORKERS = 4
export const MOST_WORKERS = 50
export const MOST_NAMED_WORKERS = 1_000
/** From this number on, items are many. */
export const MANY = 20
const ITEMS_PER_WORKER = 100
const MOST_STEPS = 20
const LONGEST_PROMPT = 2_000

/** Words by which a description asks for one result. */
export const PUT_TOGETHER =
  /\b(summari[sz]|aggregat|combin|consolidat|merg|tally|count\b|total|averag|statistics|one (report|answer|list|summary)|overall|(weekly|final|single|common) (report|summary))/i

/** Says how many items were found or are assumed, and how many workers were found. */
export function countedItems({ items, workers }: WorkloadFacts): string {
  const given = workers === null ? '' : `, ${workers} workers`
  const assumed = Math.max(ASSUMED.items, workers ?? 0)
  return items === null ? `Assumes ${assumed} items${given}.` : `Counts ${items} items${given}.`
}

/** Each leaf works on one of `count` equal shares of the items. */
export const sharedTasks = (facts: WorkloadFacts, count: number): FunctionLeaf[] =>
  Array.from({ length: count }, (_, place) =>
    callOf('muster.ask_each', { prompt: promptOf(facts), items: '{{input.items}}', share: { of: count, place } }),
  )

/** There are never more workers than items. */
export const itemsOf = ({ items, workers }: WorkloadFacts): number => items ?? Math.max(ASSUMED.items, workers ?? 0)

/** A hundred items per worker, but several workers for few items, and no more than a model's rate limit allows. */
export function workersOf(facts: WorkloadFacts): number {
  if (facts.workers !== null) return Math.min(facts.workers, MOST_NAMED_WORKERS)
  const items = itemsOf(facts)
  return Math.min(items, MOST_WORKERS, Math.max(FEWEST_WORKERS, Math.ceil(items / ITEMS_PER_WORKER)))
}

/** The steps that the description names. If it gives no names, each step gets the whole description and its number. */
export function stepsOf(facts: WorkloadFacts): string[] {
  const { steps, stepCount } = facts
  if (steps.length > 1) return steps.slice(0, MOST_STEPS).map(asPrompt)
  const count = Math.min(stepCount ?? ASSUMED.steps, MOST_STEPS)
  return Array.from({ length: count }, (_, place) => `Do step ${place + 1} of ${count} of this: ${promptOf(facts)}`)
}

/** The words of the given step if there are several steps, else the whole description. */
export const promptOf = ({ text, steps }: WorkloadFacts, step?: number): string =>
  asPrompt((step !== undefined && steps.length > 1 && steps.at(step)) || text || 'Do the work.')

/** Braces of the description must not become placeholders of the definition. */
const asPrompt = (text: string): string => cutText(text, LONGEST_PROMPT).replaceAll('{{', '{ {')

export function condensingCalls(answers: number): number {
  let calls = 0
  for (let left = answers; left > 1 || calls === 0; ) {
    left = Math.ceil(left / CONDENSED_AT_ONCE)
    calls += left
  }
  return calls
}
