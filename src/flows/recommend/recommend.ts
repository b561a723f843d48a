// Recommends a pattern for a described workload, as a flow that can be started, with an estimate. The words and numbers
// of the description decide (workload-facts.ts, choose-pattern.ts), so the same words get the same answer. Or a model
// decides (recommend-with-model.ts), and the flow is built from the facts that the model gives.
import { cutText } from '../../kernel/cut-text.ts'
import type { FlowNode } from '../../kernel/flow.ts'
import type { Patterns } from '../machine/pattern.ts'
import { ASSUMED, countedItems, MODEL_CALL_MS, type WorkloadFacts } from '../machine/workload.ts'
import { type ChosenPattern, candidatesIn, choosePattern } from './choose-pattern.ts'
import { readWorkload } from './workload-facts.ts'

export interface Recommendation {
  pattern: string
  /** Reads `{{input.items}}` or `{{input}}`. Its leaves are built-in functions, to be replaced by one's own. */
  definition: FlowNode
  estimate: Estimate
  reasoning: string
}

interface Estimate {
  workers: number
  model_calls: number
  tokens: number
  /** Milliseconds. */
  duration: number
}

export interface RecommendOptions {
  patterns: Patterns
  workload: string
  /** The reasoning points to templates of the same pattern. */
  templates?: readonly { name: string; pattern: string }[]
  /** Names of the project's agents, for a pattern that is made of agents. The first agent leads. */
  agents?: readonly string[]
  advice?: ModelAdvice | undefined
}

/** A model's understanding of the description. Facts that the model leaves open are taken from the words. */
export interface ModelAdvice {
  pattern: string
  items?: number | null | undefined
  workers?: number | null | undefined
  steps?: readonly string[] | null | undefined
  reasoning: string
}

const ANSWER_TOKENS = 500
const LONGEST_REASONING = 1_000

export function recommend(options: RecommendOptions): Recommendation {
  const { workload, patterns, templates = [], agents = [], advice } = options
  const facts = advised(readWorkload(workload), advice)
  const { candidate, because } = (advice && advisedPattern(advice, patterns)) ?? choosePattern(facts, patterns)
  const { type: pattern, suits } = candidate
  const plan = suits.plan(facts, agents)
  const tokensPerCall = (facts.tokensPerItem ?? ASSUMED.tokensPerItem) + ANSWER_TOKENS
  const similar = templates.filter((template) => template.pattern === pattern).map(({ name }) => name)
  const sentences = [
    advice
      ? `The model chose ${pattern}: ${sentence(advice.reasoning)}`
      : because.length > 0
        ? `${pattern} suits because ${because.join('; ')}.`
        : `${pattern}: nothing in the description says that parts of it can be done at once.`,
    suits.counts?.(facts) ?? countedItems(facts),
    `Estimated at ${tokensPerCall} tokens and ${MODEL_CALL_MS / 1_000} s per model call, ${plan.rounds} of ${plan.calls} calls one after the other.`,
    plan.note ?? '',
    similar.length > 0 ? `Templates of this pattern: ${similar.join(', ')}.` : '',
  ]
  return {
    pattern,
    definition: plan.definition,
    estimate: {
      workers: plan.workers,
      model_calls: plan.calls,
      tokens: plan.calls * tokensPerCall,
      duration: plan.rounds * MODEL_CALL_MS,
    },
    reasoning: sentences.filter((sentence) => sentence !== '').join(' '),
  }
}

function advisedPattern({ pattern }: ModelAdvice, patterns: Patterns): ChosenPattern | null {
  const candidate = candidatesIn(patterns).find(({ type }) => type === pattern)
  return candidate ? { candidate, because: [] } : null
}

const advised = (facts: WorkloadFacts, advice: ModelAdvice | undefined): WorkloadFacts => ({
  ...facts,
  items: advice?.items ?? facts.items,
  workers: advice?.workers ?? facts.workers,
  steps: advice?.steps && advice.steps.length > 1 ? [...advice.steps] : facts.steps,
})

function sentence(reasoning: string): string {
  const text = cutText(reasoning, LONGEST_REASONING).toWellFormed().trim()
  return /[.!?…]$/.test(text) ? text : `${text}.`
}
