// Guards are asked before every model call and tool call. Each is a pure function of facts; runs/ acts on the verdict.

export type Limit = 'step_limit' | 'timeout'

/** go: make the call · wind_down: one last call, tools off, to summarise · wait: park until something settles. */
export type CallVerdict =
  | { verdict: 'go' }
  | { verdict: 'wind_down'; reason: Limit }
  /** `limit`: the limit that the run has reached, if the history is shortened for the summary. */
  | { verdict: 'compact'; limit: Limit | null }
  | { verdict: 'wait'; reason: 'budget' }
  | { verdict: 'wait'; reason: 'halted' }
  /** An agent that is a flow has no tokens for the leaves of its task: the run goes on with a top-up. */
  | { verdict: 'wait'; reason: 'tokens'; attemptRunId: string }
  | { verdict: 'stop'; status: 'paused'; reason: 'step_limit' | 'timeout' | 'context' | 'budget' }
  | { verdict: 'stop'; status: 'failed'; reason: 'BUDGET_EXHAUSTED' }
  /** The project has used up its tokens of this month: the run goes on next month, or with a higher limit. */
  | { verdict: 'next_month'; inMs: number }
  | { verdict: 'stop'; status: 'cancelled'; reason: null }

const go: CallVerdict = { verdict: 'go' }

export interface StepFacts {
  /** Model calls of this run alone; calls of an earlier run before a resume do not count. */
  stepsDone: number
  maxSteps: number | null
  /** True if the call that asks for a summary was made already. */
  hasWoundDown: boolean
}

/** After `maxSteps` steps one summary call follows; after its answer the run always pauses. */
export function guardSteps({ stepsDone, maxSteps, hasWoundDown }: StepFacts): CallVerdict {
  if (maxSteps === null || stepsDone < maxSteps) return go
  if (hasWoundDown) return { verdict: 'stop', status: 'paused', reason: 'step_limit' }
  return { verdict: 'wind_down', reason: 'step_limit' }
}

export interface TimeFacts {
  elapsedMs: number
  timeoutMs: number | null
  graceMs: number
  hasWoundDown: boolean
}

/** At the deadline a summary is asked for; when the grace has passed too, the run pauses without one. */
export function guardTime({ elapsedMs, timeoutMs, graceMs, hasWoundDown }: TimeFacts): CallVerdict {
  if (timeoutMs === null || elapsedMs < timeoutMs) return go
  if (hasWoundDown || elapsedMs >= timeoutMs + graceMs) return { verdict: 'stop', status: 'paused', reason: 'timeout' }
  return { verdict: 'wind_down', reason: 'timeout' }
}

export interface BudgetFacts {
  allocation: number | null
  used: number
  /** Upper bounds of the calls of all runs of this agent that are under way. */
  reserved: number
  /** Upper bound of the call in question: its input and all the output it may make. */
  bound: number
  isFirstCall: boolean
}

/** A call is admitted if it fits with all calls under way, or if none is under way: an agent overshoots by one call. */
export function guardBudget({ allocation, used, reserved, bound, isFirstCall }: BudgetFacts): CallVerdict {
  if (allocation === null || used + reserved + bound <= allocation) return go
  if (used >= allocation) {
    return isFirstCall
      ? { verdict: 'stop', status: 'failed', reason: 'BUDGET_EXHAUSTED' }
      : { verdict: 'stop', status: 'paused', reason: 'budget' }
  }
  return reserved === 0 ? go : { verdict: 'wait', reason: 'budget' }
}

export interface ContextFacts {
  promptTokens: number
  contextTokens: number
  /** True if the older steps were summarised already and no further step can be summarised. */
  isCompacted: boolean
  /** True if the provider refused the request as too long, whatever Muster estimates. */
  isTooLong?: boolean
}

const COMPACT_AT = 0.8
const compact: CallVerdict = { verdict: 'compact', limit: null }

export function guardContext({ promptTokens, contextTokens, isCompacted, isTooLong }: ContextFacts): CallVerdict {
  if (isTooLong) return isCompacted ? { verdict: 'stop', status: 'paused', reason: 'context' } : compact
  if (promptTokens < contextTokens * COMPACT_AT) return go
  if (!isCompacted) return compact
  return promptTokens < contextTokens ? go : { verdict: 'stop', status: 'paused', reason: 'context' }
}

interface SwitchFacts {
  isCancelled: boolean
  isHalted: boolean
}

export function guardSwitches({ isCancelled, isHalted }: SwitchFacts): CallVerdict {
  if (isCancelled) return { verdict: 'stop', status: 'cancelled', reason: null }
  return isHalted ? { verdict: 'wait', reason: 'halted' } : go
}

export type ModelCallFacts = SwitchFacts & TimeFacts & StepFacts & ContextFacts

/** The first guard that objects decides. The budget is asked last, under the lock of its row, when the call is made. */
export function guardModelCall(facts: ModelCallFacts): CallVerdict {
  for (const guard of [guardSwitches, guardTime, guardSteps, guardContext]) {
    const verdict = guard(facts)
    if (verdict.verdict === 'wind_down' && facts.isTooLong) return shortenSummary(facts, verdict.reason)
    if (verdict.verdict !== 'go') return verdict
  }
  return go
}

/** The provider refused the request for the summary as too long: the same request would be refused again. */
const shortenSummary = ({ isCompacted }: ContextFacts, limit: Limit): CallVerdict =>
  isCompacted ? { verdict: 'stop', status: 'paused', reason: limit } : { verdict: 'compact', limit }

/** retry: no ending, as if the connection was cut · fail: the same ending would come again (cut, filtered). */
export type Ending =
  | { ending: 'complete' }
  | { ending: 'act' }
  /** `isCut`: the provider or the connection failed; else the model did. */
  | { ending: 'retry'; message: string; retries: number; isCut: boolean }
  | { ending: 'fail'; message: string }

/** Only a clean stop completes a run. Gemini says `stop` when it asks for tools, others `tool-calls`. */
export function judgeEnding(finishReason: string, toolCalls: number, text: string): Ending {
  const mayAct = finishReason === 'stop' || finishReason === 'tool-calls'
  if (mayAct && toolCalls > 0) return { ending: 'act' }
  if (finishReason === 'stop' && text !== '') return { ending: 'complete' }
  const passing = passingEndings[finishReason]
  if (passing) return { ending: 'retry', ...passing }
  return { ending: 'fail', message: lastingEndings[finishReason] ?? `The model stopped with "${finishReason}".` }
}

/** A cut may pass with the next call or the one after; a model that says nothing twice will say nothing again. */
const passingEndings: Readonly<Record<string, { message: string; retries: number; isCut: boolean }>> = {
  stop: { message: 'The model ended its answer without saying anything.', retries: 1, isCut: false },
  'tool-calls': { message: 'The model said that it calls tools and called none.', retries: 1, isCut: false },
  interrupted: { message: 'The answer was cut off before its end.', retries: 4, isCut: true },
  error: { message: 'The provider reported an error in the middle of the answer.', retries: 4, isCut: true },
}

const lastingEndings: Readonly<Record<string, string>> = {
  length: 'The answer was cut at max_output_tokens.',
  'content-filter': 'The provider filtered the answer.',
}
