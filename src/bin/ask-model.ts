// Calls of flows, beside the agents, to a project's default model. They follow the rules of every model call: the off
// switch is read first, passing failures are retried, and tokens are counted, those of failed tries too.
import { setTimeout as delay } from 'node:timers/promises'
import { whileUnavailable } from '../db/patience.ts'
import type { Pool } from '../db/pool.ts'
import { noteAsked } from '../flows/asked-usage.ts'
import type { Ask } from '../flows/built-in-functions.ts'
import type { WhileIdle } from '../flows/call-function.ts'
import type { Decide } from '../flows/recommend-with-model.ts'
import { getSettings } from '../identity/settings.ts'
import type { ModelChoice } from '../kernel/agent.ts'
import { costOf } from '../kernel/cost.ts'
import { judgeEnding } from '../kernel/guards.ts'
import type { Model, ModelOutcome, ModelRequest } from '../kernel/model-call.ts'
import { retryWaitMs, triedOften } from '../kernel/retry.ts'
import type { StepUsage } from '../kernel/run.ts'
import { findProvider } from '../models/providers.ts'

const MOST_TOKENS = 4_096
const SYSTEM = 'You do what you are asked, carefully, and answer with the result alone.'
/** The interval at which a call that waits for the off switch reads this process's copy of the switch. */
const LOOK_EVERY_MS = 200
/** A call that waits longer than this gives up its slot meanwhile. */
const IDLE_ABOVE_MS = 1_000
/** Spent tokens are counted before the answer is used; the database may be away this long meanwhile. */
const COUNTED_WITHIN_MS = 20_000

export interface ModelParts {
  pool: Pool
  resolveModel: (choice: ModelChoice) => Promise<Model | null>
  /** Tells whether the project's off switch is on. */
  isHalted: (projectId: string) => boolean
  /** The wait before the first retry of a call; each further wait is twice as long. */
  firstBackoffMs?: number
}

/** Asks the project's default model, for leaves of flows that need no agent. Rejects when the model does not answer. */
export function createAsk(parts: ModelParts): Ask {
  const { pool } = parts
  return async ({ projectId, flowRunId, whileIdle }, prompt, signal) => {
    const { default_model: choice } = await getSettings(pool, projectId)
    const count = (usage: StepUsage): Promise<void> =>
      whileUnavailable(COUNTED_WITHIN_MS, () => noteAsked(pool, flowRunId, usage))
    return callFor(parts, { projectId, choice, prompt, count, whileIdle }, signal)
  }
}

/**
 * Asks the project's default model for an answer of a given shape. The offline model is not asked, because it fills a
 * shape with anything. No model is asked while the project is halted.
 */
export function createDecide(parts: ModelParts): Decide {
  const { pool, isHalted } = parts
  return async (projectId, { prompt, answer: answerSchema }, signal) => {
    if (isHalted(projectId)) return null
    const { default_model: choice } = await getSettings(pool, projectId)
    const provider = await findProvider(pool, choice.provider)
    if (!provider || provider.kind === 'offline') return null
    return callFor(parts, { projectId, choice, prompt, answerSchema, count: async () => {} }, signal)
  }
}

interface Question extends Pick<ModelRequest, 'answerSchema'> {
  projectId: string
  choice: Pick<ModelChoice, 'provider' | 'name'>
  prompt: string
  count: (usage: StepUsage) => Promise<void>
  whileIdle?: WhileIdle | undefined
}

async function callFor(parts: ModelParts, question: Question, signal: AbortSignal): Promise<string> {
  const { projectId, choice, count, whileIdle = (wait) => wait() } = question
  const model = await parts.resolveModel({ ...choice, max_output_tokens: MOST_TOKENS })
  if (!model) throw new Error(`There is no provider called "${choice.provider}".`)
  let waitedMs = 0
  for (let attempts = 0; ; attempts++) {
    // The question waits while the project is halted: it is neither lost nor answered with a failure.
    if (parts.isHalted(projectId)) await whileIdle(() => untilReleased(parts, projectId, signal))
    signal.throwIfAborted()
    const outcome = await model.call(requestOf(question), { signal, onText: () => {} })
    await count(usageOf(model, outcome))
    signal.throwIfAborted()
    const answer = answerOf(outcome, attempts)
    if ('text' in answer) return answer.text
    const waitMs = retryWaitMs(answer, { attempts, waitedMs, firstBackoffMs: parts.firstBackoffMs })
    if (waitMs === null) throw new Error(`${answer.message}${triedOften(attempts)}`)
    waitedMs += waitMs
    const wait = (): Promise<void> => delay(waitMs, undefined, { signal })
    await (waitMs > IDLE_ABOVE_MS ? whileIdle(wait) : wait())
  }
}

async function untilReleased({ isHalted }: ModelParts, projectId: string, signal: AbortSignal): Promise<void> {
  while (isHalted(projectId)) await delay(LOOK_EVERY_MS, undefined, { signal })
}

function requestOf({ prompt, answerSchema }: Question): ModelRequest {
  return {
    prompt: [
      { role: 'system', content: SYSTEM },
      { role: 'user', content: [{ type: 'text', text: prompt }] },
    ],
    tools: [],
    toolChoice: 'auto',
    maxOutputTokens: MOST_TOKENS,
    ...(answerSchema ? { answerSchema } : {}),
  }
}

type Answer = { text: string } | { isRetryable: boolean; retryAfterMs: number | null; message: string }

function answerOf(outcome: ModelOutcome, attempts: number): Answer {
  if (outcome.kind === 'failed') {
    const { isRetryable, retryAfterMs, message } = outcome
    return { isRetryable, retryAfterMs, message }
  }
  const lost = { isRetryable: false, retryAfterMs: null }
  if (outcome.kind === 'aborted') return { ...lost, message: 'The call of the model was given up.' }
  const ending = judgeEnding(outcome.finishReason, outcome.calls.length, outcome.text)
  switch (ending.ending) {
    case 'complete':
      return { text: outcome.text }
    case 'retry':
      return { ...lost, isRetryable: attempts < ending.retries, message: ending.message }
    case 'act':
      return { ...lost, message: 'The model asked for a tool, and there is none.' }
    case 'fail':
      return { ...lost, message: ending.message }
  }
}

function usageOf(model: Model, { usage }: ModelOutcome): StepUsage {
  return {
    input_tokens: Math.ceil(usage.inputTokens),
    output_tokens: Math.ceil(usage.outputTokens),
    estimated: usage.isEstimated,
    cost_usd: costOf(model.price, usage.inputTokens, usage.outputTokens),
  }
}
