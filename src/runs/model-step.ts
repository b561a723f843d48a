// One step: guards are asked, the model is called once, and its answer is committed with the announcement of its calls.

import { costOf } from '../kernel/cost.ts'
import { defined } from '../kernel/defined.ts'
import { fault } from '../kernel/fault.ts'
import { type CallVerdict, guardModelCall, judgeEnding, type Limit } from '../kernel/guards.ts'
import type { ModelOutcome, ModelRequest } from '../kernel/model-call.ts'
import type { StepUsage } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { isSpecialist } from '../kernel/supervisor.ts'
import { estimateInputTokens } from '../models/estimate-tokens.ts'
import { admitCall, settleCall } from './admit-call.ts'
import { compactHistory, pauseForContext, planCompaction } from './compact.ts'
import { brokenOff, cancelled, type End, leave, outOfTokens, runFailed, stopped, waiting } from './end.ts'
import { judgeCalls } from './judge-calls.ts'
import { afterModel, beforeModel, hasHook, holdsText, type Passed, type PreparedRequest } from './middleware.ts'
import {
  append,
  chosenModel,
  elapsedMs,
  type OwnedRun,
  type Question,
  remainingMs,
  type StageTools,
  type StepPurpose,
  spend,
} from './owned-run.ts'
import { parkForBudget, parkForMonth, parkForTokens } from './park.ts'
import { nextRequest, promptTokens } from './prompt.ts'
import type { Answered } from './response-view.ts'
import { afterFailure } from './retry-step.ts'
import { changesNothing, commitWithCalls } from './settle-calls.ts'
import { nextStage } from './stages.ts'
import { checkProvider } from './wait-for-provider.ts'

/** again: the loop goes on · left: the run has ended, parked or was handed back, and is no longer this process's. */
export type StepProgress = 'again' | 'left'

type WindDown = Limit | null

export async function takeStep(owned: OwnedRun): Promise<StepProgress> {
  const verdict = askGuards(owned)
  if (MAKES_CALL.has(verdict.verdict)) {
    const progress = await checkProvider(owned, limitOf(verdict))
    if (progress !== null) return progress
  }
  switch (verdict.verdict) {
    case 'go':
      return callModel(owned, null)
    case 'wind_down':
      owned.question = null
      return callModel(owned, verdict.reason)
    case 'compact': {
      const compaction = planCompaction(owned)
      if (!compaction) return pauseForContext(owned, verdict.limit)
      const tokens = estimateInputTokens(compaction.request)
      return prepare(owned, compaction.request, { tokens, graceMs: owned.settings.grace_period }, (prepared) =>
        compactHistory(owned, { keep: compaction.keep, limit: verdict.limit }, prepared),
      )
    }
    default:
      return heed(owned, verdict)
  }
}

/** The limit that the run has reached before this call. */
const limitOf = (verdict: CallVerdict): Limit | null =>
  verdict.verdict === 'wind_down' ? verdict.reason : verdict.verdict === 'compact' ? verdict.limit : null

const MAKES_CALL: ReadonlySet<string> = new Set(['go', 'wind_down', 'compact'])

function askGuards(owned: OwnedRun): CallVerdict {
  const { state, run, settings, deps, control } = owned
  return guardModelCall({
    isCancelled: control.interruption() === 'cancel',
    isHalted: deps.isHalted(run.project_id),
    elapsedMs: elapsedMs(owned),
    timeoutMs: run.timeout,
    graceMs: settings.grace_period,
    hasWoundDown: state.woundDown !== null,
    stepsDone: state.ownSteps,
    maxSteps: run.max_steps,
    promptTokens: promptTokens(owned),
    contextTokens: owned.model.contextTokens,
    isCompacted: state.isCompacted,
    isTooLong: state.isTooLong,
  })
}

async function heed(
  owned: OwnedRun,
  verdict: Extract<CallVerdict, { verdict: 'wait' | 'next_month' | 'stop' }>,
): Promise<StepProgress> {
  switch (verdict.verdict) {
    case 'wait':
      // The loop parks a run of a halted project before anything else.
      if (verdict.reason === 'halted') return 'again'
      await (verdict.reason === 'budget' ? parkForBudget(owned) : parkForTokens(owned, verdict.attemptRunId))
      return 'left'
    case 'next_month':
      return (await parkForMonth(owned, verdict.inMs)) ? 'left' : 'again'
    case 'stop':
      return leave(owned, endOf(owned, verdict))
  }
}

function callModel(owned: OwnedRun, windDown: WindDown): Promise<StepProgress> {
  const graceMs = windDown ? owned.settings.grace_period : 0
  const given = { tokens: promptTokens(owned), graceMs }
  return prepare(owned, nextRequest(owned, windDown), given, (prepared) => makeCall(owned, prepared, windDown))
}

/** Middleware sees the request first; tokens are reserved for the changed request. */
async function prepare(
  owned: OwnedRun,
  request: ModelRequest,
  { tokens, graceMs }: { tokens: number; graceMs: number },
  makeCall: (prepared: PreparedRequest) => Promise<StepProgress>,
): Promise<StepProgress> {
  try {
    let prepared: PreparedRequest = { request, tokens }
    if (hasHook(owned, 'beforeModel')) {
      const passed = await askMiddleware(owned, prepared, graceMs)
      if (passed.kind === 'failed') return leave(owned, brokenOff(owned, passed.message))
      // The switches or the guards decide the next step.
      if (passed.kind === 'aborted') return 'again'
      prepared = passed.value
    }
    const admitted = await admitCall(owned, prepared.tokens)
    switch (admitted.verdict) {
      case 'wait':
      case 'next_month':
      case 'stop':
        return await heed(owned, admitted)
    }
    const progress = await makeCall(prepared)
    await settleCall(owned)
    return progress
  } finally {
    owned.call?.end()
    owned.call = null
  }
}

async function askMiddleware(
  owned: OwnedRun,
  { request, tokens }: PreparedRequest,
  graceMs: number,
): Promise<Passed<PreparedRequest>> {
  const { control, state, deps, run } = owned
  const { signal, end } = control.signalFor(remainingMs(owned, graceMs), 'model')
  const passed = await beforeModel(owned, request, { step: state.steps + 1, tokens, signal })
  end()
  const isStopped = control.interruption() !== null || control.isAskedToYield() || deps.isHalted(run.project_id)
  return passed.kind === 'passed' && isStopped ? { kind: 'aborted' } : passed
}

async function makeCall(owned: OwnedRun, prepared: PreparedRequest, windDown: WindDown): Promise<StepProgress> {
  const { state, control, settings, run, deps } = owned
  await noteLostCall(owned)
  const step = state.steps + 1
  const startedAt = Date.now()
  const began = performance.now()
  owned.woken = null
  const call = control.signalFor(remainingMs(owned, windDown ? settings.grace_period : 0), 'model')
  const isHeld = holdsText(owned)
  let offset = 0
  const said = await owned.model.call(prepared.request, {
    signal: call.signal,
    onText: (text) => {
      void fault('llm.mid_stream')
      if (isHeld) return
      deps.onText(run.id, step, offset, text)
      offset += text.length
    },
  })
  deps.outages.heard(chosenModel(owned), said)
  const took = { startedAt, duration: Math.round(performance.now() - began) }
  const passed = await heard(owned, said, { step, signal: call.signal })
  call.end()
  await fault('llm.after_reply_before_commit')
  const usage = priced(owned, said)
  if (passed.kind === 'failed') return leave(owned, brokenOff(owned, passed.message), [], spend(owned, usage))
  return react(owned, { outcome: passed.value, prepared, usage, step, windDown, took, cause: call.cause() })
}

/** Middleware does not see an answer that was cut off. If middleware holds text back, such an answer has no text. */
async function heard(
  owned: OwnedRun,
  said: ModelOutcome,
  given: { step: number; signal: AbortSignal },
): Promise<Exclude<Passed<ModelOutcome>, { kind: 'aborted' }>> {
  if (!hasHook(owned, 'afterModel')) return { kind: 'passed', value: said }
  if (said.kind !== 'answered' || CUT_OFF.has(said.finishReason)) {
    return { kind: 'passed', value: holdsText(owned) ? { ...said, text: '' } : said }
  }
  const passed = await afterModel(owned, said, given)
  if (passed.kind !== 'aborted') return passed
  return { kind: 'passed', value: { kind: 'aborted', text: '', usage: said.usage } }
}

const CUT_OFF: ReadonlySet<string> = new Set(['interrupted', 'error'])

interface Reply {
  outcome: ModelOutcome
  prepared: PreparedRequest
  usage: StepUsage
  step: number
  windDown: WindDown
  took: { startedAt: number; duration: number }
  cause: ReturnType<ReturnType<OwnedRun['control']['signalFor']>['cause']>
}

async function react(owned: OwnedRun, reply: Reply): Promise<StepProgress> {
  const { outcome, usage, step, windDown, cause } = reply
  const { state } = owned
  if (outcome.kind === 'aborted') {
    const textSoFar = outcome.text || state.text || null
    if (cause === 'cancel') return leave(owned, cancelled(textSoFar), [], spend(owned, usage))
    // The grace is over, too: the run ends with the text so far.
    if (cause === 'deadline' && windDown) return leave(owned, stopped(windDown, textSoFar), [], spend(owned, usage))
    const reason = cause === 'deadline' ? 'timeout' : 'handed_back'
    const void_ = { step, reason, usage, ...(outcome.text ? { text: outcome.text } : {}) } as const
    await append(owned, [{ kind: 'step.restarted', data: void_ }], spend(owned, usage))
    return 'again'
  }
  if (outcome.kind === 'failed') return afterFailure(owned, { ...reply, outcome, usage })
  const ending = judgeEnding(outcome.finishReason, outcome.calls.length, outcome.text)
  // If a decision was asked for, silence is an answer that does not fit.
  const isSilent = outcome.finishReason === 'stop' && outcome.text === ''
  if (owned.question?.name && isSilent) return decide(owned, owned.question, { ...reply, outcome })
  if (ending.ending === 'retry') {
    const { text } = outcome
    const isRetryable = ending.isCut || state.attempts < ending.retries
    const failure = { kind: 'failed', isRetryable, retryAfterMs: null, message: ending.message, text } as const
    return afterFailure(owned, { ...reply, outcome: { ...failure, usage: outcome.usage }, usage })
  }
  return commitStep(owned, { ...reply, outcome, ending })
}

async function commitStep(
  owned: OwnedRun,
  reply: Reply & {
    outcome: Answered
    ending: Exclude<ReturnType<typeof judgeEnding>, { ending: 'retry' }>
  },
): Promise<StepProgress> {
  const { outcome, prepared, ending, step, usage, windDown, took } = reply
  const { state, question, run, settings } = owned
  if (question) return decide(owned, question, reply)
  const text = outcome.text || state.text
  const isTooDeep = isSpecialist(run.part) && outcome.calls.length > 0 && state.toolRounds >= settings.recursion_limit
  const refuseAll = isTooDeep ? TOO_DEEP : refusalOf(windDown, ending.ending)
  const tools = offeredTools(owned, prepared.request)
  const judged = judgeCalls(owned, outcome.calls, { step, text, refuseAll, tools })
  const stepDone: RunEvent = {
    kind: 'step.completed',
    data: defined({
      step,
      text: outcome.text,
      tool_calls: judged.calls,
      finish_reason: outcome.finishReason,
      usage,
      started_at: new Date(took.startedAt).toISOString(),
      duration: took.duration,
      reasoning: outcome.reasoning.length > 0 ? outcome.reasoning : undefined,
      loop: judged.calls.length > 0 ? judged.doomLoop : undefined,
      wind_down: windDown ?? undefined,
      request_changes: prepared.changes,
    }),
  }
  const change = { ...spend(owned, usage), steps: 1 }
  // If middleware may answer calls itself, the calls are announced after it was asked.
  const isHeld = hasHook(owned, 'beforeTool')
  const judgedNow = isHeld ? judged.events.filter(({ kind }) => kind !== 'tool.started') : judged.events
  const events = [stepDone, ...judgedNow]
  if (isTooDeep) return leave(owned, runFailed('RECURSION_LIMIT', tooDeep(settings), text || null), events, change)
  if (windDown) return leave(owned, stopped(windDown, text), events, change)
  if (ending.ending === 'fail')
    return leave(owned, runFailed('MODEL_ERROR', ending.message, text || null), events, change)
  if (judged.end) return leave(owned, judged.end, events, change)
  if (ending.ending === 'complete' && isSpecialist(run.part)) {
    // The question for the summary comes next.
    await append(owned, [stepDone], change)
    return 'again'
  }
  if (ending.ending === 'complete') {
    const next = nextStage(owned, outcome.text)
    if (next.end) return leave(owned, next.end, [stepDone], change)
    await append(owned, [stepDone, next.event], change)
    return 'again'
  }
  if (!isHeld && changesNothing(judged.events)) await commitWithCalls(owned, events, change)
  else await append(owned, events, change)
  await fault('step.after_commit')
  return 'again'
}

/** Commits the answer to a question. A reply that was cut off or called tools is no answer. */
async function decide(
  owned: OwnedRun,
  question: Question,
  { outcome, prepared, step, usage, took }: Pick<Reply, 'prepared' | 'step' | 'usage' | 'took'> & { outcome: Answered },
): Promise<StepProgress> {
  const { text, calls, finishReason } = outcome
  const isAnswer =
    judgeEnding(finishReason, calls.length, text).ending === 'complete' ||
    (question.name === null && finishReason === 'length' && calls.length === 0)
  const timing = { started_at: new Date(took.startedAt).toISOString(), duration: took.duration }
  const changes = defined({ request_changes: prepared.changes })
  const said = { step, text, tool_calls: [], finish_reason: finishReason, usage, ...timing, ...changes }
  const stepDone = (purpose: StepPurpose): RunEvent => ({ kind: 'step.completed', data: { ...said, ...purpose } })
  const progress = await question.commit(isAnswer ? text : '', stepDone, { ...spend(owned, usage), steps: 1 })
  owned.question = null
  return progress
}

/** Middleware may take a tool out of the request. The model's calls of that tool are then calls of an unknown name. */
function offeredTools({ stage }: OwnedRun, { tools }: ModelRequest): StageTools['byName'] {
  if (tools === stage.faces) return stage.byName
  const names = new Set(tools.map(({ name }) => name))
  return new Map([...stage.byName].filter(([name]) => names.has(name)))
}

const TOO_DEEP = {
  message: 'This call was not made: it is one round of calls too many.',
  blocked: 'recursion_limit',
} as const

const tooDeep = ({ recursion_limit: limit }: OwnedRun['settings']): string =>
  `RECURSION_LIMIT_EXCEEDED: the agent called tools in more than ${limit} steps in a row.`

/** A run makes no call after its limit, nor after an answer that was cut off. */
function refusalOf(windDown: WindDown, ending: string): { message: string; blocked: WindDown } | null {
  if (windDown) return { message: 'The run has reached its limit: this call was not made.', blocked: windDown }
  return ending === 'fail' ? { message: 'The answer was cut off: this call was not made.', blocked: null } : null
}

/** The run's owner may have died with a call under way: the tokens were spent, and the text that was shown is void. */
async function noteLostCall(owned: OwnedRun): Promise<void> {
  const { state } = owned
  if (!state.mayHaveLostCall) return
  const usage: StepUsage = {
    input_tokens: promptTokens(owned),
    output_tokens: 0,
    estimated: true,
    cost_usd: costOf(owned.model.price, promptTokens(owned), 0),
  }
  await append(owned, [{ kind: 'step.restarted', data: { step: state.steps + 1, reason: 'crash', usage } }], {
    inputTokens: usage.input_tokens,
    ...(usage.cost_usd === null ? {} : { costUsd: usage.cost_usd }),
    set: { usage_estimated: true },
  })
}

function priced(owned: OwnedRun, { usage }: ModelOutcome): StepUsage {
  return {
    input_tokens: Math.ceil(usage.inputTokens),
    output_tokens: Math.ceil(usage.outputTokens),
    estimated: usage.isEstimated,
    cost_usd: costOf(owned.model.price, usage.inputTokens, usage.outputTokens),
  }
}

function endOf({ state, run }: OwnedRun, verdict: Extract<CallVerdict, { verdict: 'stop' }>): End {
  const text = state.text || null
  if (verdict.reason === 'budget' && run.task_id !== null) return waiting('budget', [], run.signals)
  switch (verdict.status) {
    case 'cancelled':
      return cancelled(text)
    case 'failed':
      return outOfTokens(text)
    case 'paused':
      return stopped(verdict.reason, text)
  }
}
