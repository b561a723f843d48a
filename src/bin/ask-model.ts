// Calls of flows to a project's default model. They follow the rules of every model call: the off switch is read first,
// the project's month has room, passing failures are retried, and tokens are counted, those of failed tries too.
import { setTimeout as delay } from 'node:timers/promises'
import { whileUnavailable } from '../db/patience.ts'
import type { Db, Pool } from '../db/pool.ts'
import type { Ask } from '../flows/definition/built-in-functions.ts'
import type { WhileIdle } from '../flows/definition/function-context.ts'
import { findAnswer, noteItemAnswer } from '../flows/execution/asked-items.ts'
import { noteAsked, readAsker, waitOrRefuse } from '../flows/execution/asked-usage.ts'
import type { Decide } from '../flows/recommend/recommend-with-model.ts'
import { getSettings } from '../identity/settings.ts'
import type { OutageWatch } from '../journal/outage-watch.ts'
import type { AdmittedCall, ProjectCalls } from '../journal/project-calls.ts'
import { noteUsage } from '../journal/usage-days.ts'
import type { ModelChoice } from '../kernel/agent.ts'
import { costOf } from '../kernel/cost.ts'
import { judgeEnding } from '../kernel/guards.ts'
import type { Model, ModelOutcome, ModelRequest } from '../kernel/model-call.ts'
import { type FailedTry, judgeFailure, triedOften } from '../kernel/retry.ts'
import type { StepUsage } from '../kernel/run.ts'
import { estimateInputTokens } from '../models/estimate-tokens.ts'
import { findProvider } from '../models/providers.ts'

const MOST_TOKENS = 4_096
const SYSTEM = 'You do what you are asked, carefully, and answer with the result alone.'
/** The interval at which a call that waits for the off switch reads this process's copy of the switch. */
const LOOK_EVERY_MS = 200
/** The interval at which a call that waits for tokens asks the database whether there are some. */
const ASK_EVERY_MS = 1_000
/** A call that waits longer than this gives up its slot meanwhile. */
const IDLE_ABOVE_MS = 1_000
/** Spent tokens are counted before the answer is used. An outage of the database up to this long is waited for. */
const COUNTED_WITHIN_MS = 20_000

export interface ModelParts {
  pool: Pool
  resolveModel: (choice: ModelChoice) => Promise<Model | null>
  isHalted: (projectId: string) => boolean
  calls: ProjectCalls
  outages: OutageWatch
  /** The wait before the first retry of a call; each further wait is twice as long. */
  firstBackoffMs?: number
}

/** Asks the project's default model, for leaves of flows that need no agent. Rejects when the model does not answer. */
export function createAsk(parts: ModelParts): Ask {
  const { pool } = parts
  return async ({ projectId, flowRunId, leafId, item, whileIdle }, prompt, signal) => {
    const itemOf = item && leafId !== undefined ? { flowRunId, leafId, ...item } : null
    const known = itemOf && (await findAnswer(pool, itemOf, prompt))
    if (known !== null) return known
    const { payers, isInEval } = await readAsker(pool, flowRunId)
    const { default_model: choice, model_patience } = await getSettings(pool, projectId)
    // An eval compares what can be had now.
    const patienceMs = isInEval ? 0 : model_patience
    const also: Question['also'] = async (tx, usage, answer) => {
      await noteAsked(tx, { flowRunId, leafId, payers }, usage)
      if (itemOf && answer !== null) await noteItemAnswer(tx, itemOf, { prompt, answer })
    }
    const ifSpent = (): Promise<void> => waitOrRefuse(pool, flowRunId)
    const source = 'function' as const
    const leaf = { flowRunId, leafId }
    const waiting = { ifSpent, whileIdle, mayWait: true, patienceMs, leaf }
    const question = { projectId, source, choice, prompt, payers, also, ...waiting }
    const answer = await callFor(parts, question, signal)
    if (answer === null) throw new Error('a question that may wait was not asked')
    return answer
  }
}

/**
 * Asks the project's default model for an answer of a given shape; not the offline model, which fills a shape with
 * anything, and none while the project is halted or has no tokens left in this month.
 */
export function createDecide(parts: ModelParts): Decide {
  const { pool, isHalted } = parts
  return async (projectId, { prompt, answer: answerSchema }, signal) => {
    if (isHalted(projectId)) return null
    const { default_model: choice } = await getSettings(pool, projectId)
    const provider = await findProvider(pool, choice.provider)
    if (!provider || provider.kind === 'offline') return null
    return callFor(parts, { projectId, source: 'other', choice, prompt, answerSchema, mayWait: false }, signal)
  }
}

interface Question extends Pick<ModelRequest, 'answerSchema'> {
  projectId: string
  /** The kind of the asker, by which the tokens of each day are told apart. */
  source: 'function' | 'other'
  choice: Pick<ModelChoice, 'provider' | 'name'>
  prompt: string
  /** The agents whose allocations the call counts for. */
  payers?: readonly string[]
  /** Called if one of them has no tokens left. Resolves if the question waits for tokens, else rejects. */
  ifSpent?: () => Promise<void>
  /** Writes that are committed with the tokens of a call, and with its answer if it has one. */
  also?: (tx: Db, usage: StepUsage, answer: string | null) => Promise<void>
  whileIdle?: WhileIdle | undefined
  /** With false, the question is not asked while the project is halted or has no tokens, and waits for no provider. */
  mayWait: boolean
  /** The most time that the question waits for a provider that fails, and the leaf that waits with it. */
  patienceMs?: number
  leaf?: { flowRunId: string; leafId: string | undefined }
}

/** Returns null if the question was not asked because it would have had to wait. */
async function callFor(parts: ModelParts, question: Question, signal: AbortSignal): Promise<string | null> {
  const { choice } = question
  const tries = noTriesYet()
  for (;;) {
    if (mustJoin(parts, question, tries)) await waitForTurn(parts, question, tries, { busyMs: 0, signal })
    // The provider may have been changed during the wait.
    const model = await resolve(parts, choice)
    const request = requestOf(question)
    const call = await admit(parts, question, estimateInputTokens(request) + MOST_TOKENS, signal)
    if (!call) return null
    tries.mayTry = false
    const outcome = await pay(call, question, model, () => model.call(request, { signal, onText: () => {} }))
    signal.throwIfAborted()
    parts.outages.heard(choice, outcome)
    const answer = answerOf(outcome, tries.attempts)
    if ('text' in answer) return answer.text
    tries.firstFailedMs ??= performance.now()
    await waitOrFail(parts, question, { tries, answer, signal })
    tries.attempts++
  }
}

async function resolve({ resolveModel, outages }: ModelParts, choice: Question['choice']): Promise<Model> {
  const model = await resolveModel({ ...choice, max_output_tokens: MOST_TOKENS })
  if (model) return model
  outages.answered(choice)
  throw new Error(`There is no provider called "${choice.provider}".`)
}

interface OwnTries {
  attempts: number
  waitedMs: number
  waits: number
  firstFailedMs: number | null
  lastWaitMs: number | null
  /** The end of the wait that the provider asked for. */
  notBeforeMs: number
  /** True if the question has waited for its turn: it joins nobody that waits. */
  mayTry: boolean
}

const noTriesYet = (): OwnTries => ({
  attempts: 0,
  waitedMs: 0,
  waits: 0,
  firstFailedMs: null,
  lastWaitMs: null,
  notBeforeMs: 0,
  mayTry: false,
})

const mustJoin = (
  { outages }: ModelParts,
  { choice, mayWait, patienceMs = 0 }: Question,
  { mayTry }: OwnTries,
): boolean => mayWait && patienceMs > 0 && !mayTry && outages.isAway(choice)

/** Waits until the question is asked again, or throws if it has failed for good. */
async function waitOrFail(
  parts: ModelParts,
  question: Question,
  { tries, answer, signal }: { tries: OwnTries; answer: Exclude<Answer, { text: string }>; signal: AbortSignal },
): Promise<void> {
  const { choice, mayWait, patienceMs = 0, whileIdle = (wait) => wait() } = question
  const { attempts, waitedMs, waits } = tries
  const triedForMs = performance.now() - (tries.firstFailedMs ?? 0)
  const judged = judgeFailure(answer, {
    attempts,
    waitedMs,
    waits,
    firstBackoffMs: parts.firstBackoffMs,
    isAway: parts.outages.isAway(choice),
    triedForMs,
    patienceMs,
    leftMs: null,
    mayWait,
  })
  switch (judged.verdict) {
    case 'fail':
    case 'compact':
      throw new Error(`${answer.message}${triedOften(attempts, triedForMs)}`)
    case 'retry': {
      tries.waitedMs += judged.waitMs
      const wait = (): Promise<void> => delay(judged.waitMs, undefined, { signal })
      return judged.waitMs > IDLE_ABOVE_MS ? whileIdle(wait) : wait()
    }
    case 'wait': {
      const { message, retryAfterMs } = answer
      tries.notBeforeMs = Math.max(tries.notBeforeMs, performance.now() + (retryAfterMs ?? 0))
      const withinMs = performance.now() - (tries.lastWaitMs ?? tries.firstFailedMs ?? 0)
      await parts.outages.failed(choice, { message, retryAfterMs, withinMs })
      await waitForTurn(parts, question, tries, { busyMs: judged.waitMs, signal })
      tries.waits++
    }
  }
}

/** Throws if the patience ends within the wait that the provider asked for. */
async function waitForTurn(
  { outages }: ModelParts,
  { projectId, choice, patienceMs = 0, leaf, whileIdle = (wait) => wait() }: Question,
  tries: OwnTries,
  { busyMs, signal }: { busyMs: number; signal: AbortSignal },
): Promise<void> {
  tries.firstFailedMs ??= performance.now()
  const atMostMs = Math.max(1, patienceMs - (performance.now() - tries.firstFailedMs))
  const wait = { ...choice, projectId, waits: tries.waits, ...leaf }
  await whileIdle(() => outages.waitForTurn(wait, { atMostMs, busyMs, signal }))
  const now = performance.now()
  const blockedMs = Math.max(tries.notBeforeMs - now, outages.blockedForMs(choice))
  const triedForMs = now - tries.firstFailedMs
  if (triedForMs >= patienceMs && blockedMs > 0) {
    const message = `${choice.provider} asked for a longer wait than model_patience allows.`
    throw new Error(`${message}${triedOften(tries.attempts, triedForMs)}`)
  }
  tries.lastWaitMs = now
  tries.mayTry = true
}

/**
 * A question waits while the project is halted or its month has no room. The off switch is read last, because it may
 * have been set during the wait for tokens.
 */
async function admit(
  { calls, isHalted }: ModelParts,
  { projectId, payers, ifSpent, mayWait, whileIdle = (wait) => wait() }: Question,
  bound: number,
  signal: AbortSignal,
): Promise<AdmittedCall | null> {
  for (;;) {
    signal.throwIfAborted()
    const asked = isHalted(projectId) ? null : await calls.ask(projectId, bound, payers)
    const call = asked && !('verdict' in asked) ? asked : null
    if (call && !signal.aborted && !isHalted(projectId)) return call
    if (asked && 'verdict' in asked && asked.verdict === 'stop') await ifSpent?.()
    if (call) await call.settle(0).finally(call.end)
    if (!mayWait) return null
    const waitMs = isHalted(projectId) ? LOOK_EVERY_MS : ASK_EVERY_MS
    await whileIdle(() => delay(waitMs, undefined, { signal }))
  }
}

async function pay(
  call: AdmittedCall,
  { projectId, source, also }: Question,
  model: Model,
  make: () => Promise<ModelOutcome>,
): Promise<ModelOutcome> {
  try {
    const outcome = await make()
    const usage = usageOf(model, outcome)
    await whileUnavailable(COUNTED_WITHIN_MS, () =>
      call.settle(usage.input_tokens + usage.output_tokens, async (tx) => {
        await also?.(tx, usage, textOf(outcome))
        await noteUsage(tx, projectId, source, usage)
      }),
    )
    return outcome
  } finally {
    call.end()
  }
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

type Answer = { text: string } | (FailedTry & { message: string })

function answerOf(outcome: ModelOutcome, attempts: number): Answer {
  if (outcome.kind === 'failed') {
    const { isRetryable, retryAfterMs, reason, message } = outcome
    return { isRetryable, retryAfterMs, reason, message }
  }
  const lost = { isRetryable: false, retryAfterMs: null }
  if (outcome.kind === 'aborted') return { ...lost, message: 'The call of the model was given up.' }
  const ending = judgeEnding(outcome.finishReason, outcome.calls.length, outcome.text)
  switch (ending.ending) {
    case 'complete':
      return { text: outcome.text }
    case 'retry':
      return { ...lost, isRetryable: ending.isCut || attempts < ending.retries, message: ending.message }
    case 'act':
      return { ...lost, message: 'The model asked for a tool, but this call has no tools.' }
    case 'fail':
      return { ...lost, message: ending.message }
  }
}

/** The text of an outcome that answers the question, else null. */
function textOf(outcome: ModelOutcome): string | null {
  const answer = answerOf(outcome, 0)
  return 'text' in answer ? answer.text : null
}

function usageOf(model: Model, { usage }: ModelOutcome): StepUsage {
  return {
    input_tokens: Math.ceil(usage.inputTokens),
    output_tokens: Math.ceil(usage.outputTokens),
    estimated: usage.isEstimated,
    cost_usd: costOf(model.price, usage.inputTokens, usage.outputTokens),
  }
}
