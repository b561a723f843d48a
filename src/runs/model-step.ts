// One step: the guards are asked, the model is called once, and its answer is committed together with the announcement
// of the tool calls that follow from it.
import { costOf } from '../kernel/cost.ts'
import { fault } from '../kernel/fault.ts'
import { type CallVerdict, guardModelCall, judgeEnding } from '../kernel/guards.ts'
import type { ModelOutcome, ModelRequest } from '../kernel/model-call.ts'
import type { StepUsage } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { isSpecialist } from '../kernel/supervisor.ts'
import { estimateInputTokens } from '../models/estimate-tokens.ts'
import { admitCall, settleCall } from './admit-call.ts'
import { compactHistory, pauseForContext, planCompaction } from './compact.ts'
import { brokenOff, cancelled, type End, failed, stopped, waiting } from './end.ts'
import { judgeCalls } from './judge-calls.ts'
import { afterModel, beforeModel, hasHook, holdsText, type Passed, type Prepared } from './middleware.ts'
import { parkForMonth } from './park.ts'
import { nextRequest, promptTokens } from './prompt.ts'
import type { Answered } from './response-view.ts'
import { afterFailure } from './retry-step.ts'
import {
  append,
  elapsedMs,
  type Question,
  remainingMs,
  type Session,
  type StageTools,
  type StepPurpose,
  spend,
  withChange,
} from './session.ts'
import { changesNothing, commitWithCalls } from './settle-calls.ts'
import { nextStage } from './stages.ts'

/** again: the loop goes on · left: the run has ended, parked or was handed back, and is no longer this process's. */
export type Progress = 'again' | 'left'

type WindDown = 'step_limit' | 'timeout' | null

export async function takeStep(session: Session): Promise<Progress> {
  const verdict = askGuards(session)
  switch (verdict.verdict) {
    case 'go':
      return callModel(session, null)
    case 'wind_down':
      session.question = null
      return callModel(session, verdict.reason)
    case 'compact': {
      const compaction = planCompaction(session)
      if (!compaction) return pauseForContext(session)
      const tokens = estimateInputTokens(compaction.request)
      return prepare(session, compaction.request, { tokens, graceMs: session.settings.grace_period }, (prepared) =>
        compactHistory(session, compaction.keep, prepared),
      )
    }
    default:
      return heed(session, verdict)
  }
}

function askGuards(session: Session): CallVerdict {
  const { state, run, settings, deps, control } = session
  return guardModelCall({
    isCancelled: control.interruption() === 'cancel',
    isHalted: deps.isHalted(run.project_id),
    elapsedMs: elapsedMs(session),
    timeoutMs: run.timeout,
    graceMs: settings.grace_period,
    hasWoundDown: state.woundDown !== null,
    stepsDone: state.ownSteps,
    maxSteps: run.max_steps,
    promptTokens: promptTokens(session),
    contextTokens: session.model.contextTokens,
    isCompacted: state.isCompacted,
  })
}

/** Acts on a verdict by which no call is made. */
async function heed(
  session: Session,
  verdict: Extract<CallVerdict, { verdict: 'wait' | 'next_month' | 'stop' }>,
): Promise<Progress> {
  switch (verdict.verdict) {
    case 'wait':
      // The loop parks a run of a halted project before anything else.
      return verdict.reason === 'halted' ? 'again' : waitForBudget(session)
    case 'next_month':
      return (await parkForMonth(session, verdict.inMs)) ? 'left' : 'again'
    case 'stop':
      return leave(session, endOf(session, verdict))
  }
}

function callModel(session: Session, windDown: WindDown): Promise<Progress> {
  const graceMs = windDown ? session.settings.grace_period : 0
  const given = { tokens: promptTokens(session), graceMs }
  return prepare(session, nextRequest(session, windDown), given, (prepared) => makeCall(session, prepared, windDown))
}

/** Shows the request to the middleware, then asks for the tokens that it takes as it is now, then makes the call. */
async function prepare(
  session: Session,
  request: ModelRequest,
  { tokens, graceMs }: { tokens: number; graceMs: number },
  makeCall: (prepared: Prepared) => Promise<Progress>,
): Promise<Progress> {
  try {
    let prepared: Prepared = { request, tokens }
    if (hasHook(session, 'beforeModel')) {
      const passed = await askMiddleware(session, prepared, graceMs)
      if (passed.kind === 'failed') return leave(session, brokenOff(session, passed.message))
      // The switches, or the guards, say what follows.
      if (passed.kind === 'aborted') return 'again'
      prepared = passed.value
    }
    const admitted = await admitCall(session, prepared.tokens)
    switch (admitted.verdict) {
      case 'wait':
      case 'next_month':
      case 'stop':
        return await heed(session, admitted)
    }
    const progress = await makeCall(prepared)
    await settleCall(session)
    return progress
  } finally {
    session.call?.end()
    session.call = null
  }
}

async function askMiddleware(
  session: Session,
  { request, tokens }: Prepared,
  graceMs: number,
): Promise<Passed<Prepared>> {
  const { control, state, deps, run } = session
  const { signal, end } = control.signalFor(remainingMs(session, graceMs), 'model')
  const passed = await beforeModel(session, request, { step: state.steps + 1, tokens, signal })
  end()
  const isStopped = control.interruption() !== null || control.isAskedToYield() || deps.isHalted(run.project_id)
  return passed.kind === 'passed' && isStopped ? { kind: 'aborted' } : passed
}

async function makeCall(session: Session, prepared: Prepared, windDown: WindDown): Promise<Progress> {
  const { state, control, settings, run, deps } = session
  await noteLostCall(session)
  const step = state.steps + 1
  const startedAt = Date.now()
  const began = performance.now()
  const call = control.signalFor(remainingMs(session, windDown ? settings.grace_period : 0), 'model')
  const isHeld = holdsText(session)
  let offset = 0
  const said = await session.model.call(prepared.request, {
    signal: call.signal,
    onText: (text) => {
      void fault('llm.mid_stream')
      if (isHeld) return
      deps.onText(run.id, step, offset, text)
      offset += text.length
    },
  })
  const took = { startedAt, duration: Math.round(performance.now() - began) }
  const passed = await heard(session, said, { step, signal: call.signal })
  call.end()
  await fault('llm.after_reply_before_commit')
  const usage = priced(session, said)
  if (passed.kind === 'failed') return leave(session, brokenOff(session, passed.message), [], spend(session, usage))
  return react(session, { outcome: passed.value, prepared, usage, step, windDown, took, cause: call.cause() })
}

/** Middleware does not see an answer that was cut off. If it holds text back, such an answer has no text. */
async function heard(
  session: Session,
  said: ModelOutcome,
  given: { step: number; signal: AbortSignal },
): Promise<Exclude<Passed<ModelOutcome>, { kind: 'aborted' }>> {
  if (!hasHook(session, 'afterModel')) return { kind: 'passed', value: said }
  if (said.kind !== 'answered' || CUT_OFF.has(said.finishReason)) {
    return { kind: 'passed', value: holdsText(session) ? { ...said, text: '' } : said }
  }
  const passed = await afterModel(session, said, given)
  if (passed.kind !== 'aborted') return passed
  return { kind: 'passed', value: { kind: 'aborted', text: '', usage: said.usage } }
}

const CUT_OFF: ReadonlySet<string> = new Set(['interrupted', 'error'])

interface Reply {
  outcome: ModelOutcome
  prepared: Prepared
  usage: StepUsage
  step: number
  windDown: WindDown
  took: { startedAt: number; duration: number }
  cause: ReturnType<ReturnType<Session['control']['signalFor']>['cause']>
}

async function react(session: Session, reply: Reply): Promise<Progress> {
  const { outcome, usage, step, windDown, cause } = reply
  const { state } = session
  if (outcome.kind === 'aborted') {
    const textSoFar = outcome.text || state.text || null
    if (cause === 'cancel') return leave(session, cancelled(textSoFar), [], spend(session, usage))
    // The grace is over as well: the run ends with the text so far.
    if (cause === 'deadline' && windDown) return leave(session, stopped(windDown, textSoFar), [], spend(session, usage))
    const reason = cause === 'deadline' ? 'timeout' : 'handed_back'
    const void_ = { step, reason, usage, ...(outcome.text ? { text: outcome.text } : {}) } as const
    await append(session, [{ kind: 'step.restarted', data: void_ }], spend(session, usage))
    return 'again'
  }
  if (outcome.kind === 'failed') return afterFailure(session, { ...reply, outcome, usage })
  const ending = judgeEnding(outcome.finishReason, outcome.calls.length, outcome.text)
  // Asked for a decision, silence is an answer that does not fit.
  const isSilent = outcome.finishReason === 'stop' && outcome.text === ''
  if (session.question?.name && isSilent) return decide(session, session.question, { ...reply, outcome })
  if (ending.ending === 'retry') {
    const { text } = outcome
    const isRetryable = state.attempts < ending.retries
    const failure = { kind: 'failed', isRetryable, retryAfterMs: null, message: ending.message, text } as const
    return afterFailure(session, { ...reply, outcome: { ...failure, usage: outcome.usage }, usage })
  }
  return commitStep(session, { ...reply, outcome, ending })
}

async function commitStep(
  session: Session,
  reply: Reply & {
    outcome: Answered
    ending: Exclude<ReturnType<typeof judgeEnding>, { ending: 'retry' }>
  },
): Promise<Progress> {
  const { outcome, prepared, ending, step, usage, windDown, took } = reply
  const { state, question, run, settings } = session
  if (question) return decide(session, question, reply)
  const text = outcome.text || state.text
  const isTooDeep = isSpecialist(run.part) && outcome.calls.length > 0 && state.toolRounds >= settings.recursion_limit
  const refuseAll = isTooDeep ? TOO_DEEP : refusalOf(windDown, ending.ending)
  const tools = offeredTools(session, prepared.request)
  const judged = judgeCalls(session, outcome.calls, { step, text, refuseAll, tools })
  const stepDone: RunEvent = {
    kind: 'step.completed',
    data: {
      step,
      text: outcome.text,
      tool_calls: judged.calls,
      finish_reason: outcome.finishReason,
      usage,
      started_at: new Date(took.startedAt).toISOString(),
      duration: took.duration,
      ...(outcome.reasoning.length > 0 ? { reasoning: outcome.reasoning } : {}),
      ...(judged.calls.length > 0 ? { loop: judged.doomLoop } : {}),
      ...(windDown ? { wind_down: windDown } : {}),
      ...changesIn(prepared),
    },
  }
  const change = { ...spend(session, usage), steps: 1 }
  // Calls that middleware may answer itself are announced after it was asked.
  const isHeld = hasHook(session, 'beforeTool')
  const judgedNow = isHeld ? judged.events.filter(({ kind }) => kind !== 'tool.started') : judged.events
  const events = [stepDone, ...judgedNow]
  if (isTooDeep) return leave(session, failed('RECURSION_LIMIT', tooDeep(settings), text || null), events, change)
  if (windDown) return leave(session, stopped(windDown, text), events, change)
  if (ending.ending === 'fail')
    return leave(session, failed('MODEL_ERROR', ending.message, text || null), events, change)
  if (judged.end) return leave(session, judged.end, events, change)
  if (ending.ending === 'complete' && isSpecialist(run.part)) {
    // The summary follows.
    await append(session, [stepDone], change)
    return 'again'
  }
  if (ending.ending === 'complete') {
    const next = nextStage(session, outcome.text)
    if (next.end) return leave(session, next.end, [stepDone], change)
    await append(session, [stepDone, next.event], change)
    return 'again'
  }
  if (!isHeld && changesNothing(judged.events)) await commitWithCalls(session, events, change)
  else await append(session, events, change)
  await fault('step.after_commit')
  return 'again'
}

/**
 * The answer to a question. A reply that was cut off or that called tools is no answer; a text that came to the limit of
 * its length is one, as far as it goes.
 */
async function decide(
  session: Session,
  question: Question,
  { outcome, prepared, step, usage, took }: Pick<Reply, 'prepared' | 'step' | 'usage' | 'took'> & { outcome: Answered },
): Promise<Progress> {
  const { text, calls, finishReason } = outcome
  const isAnswer =
    judgeEnding(finishReason, calls.length, text).ending === 'complete' ||
    (question.name === null && finishReason === 'length' && calls.length === 0)
  const timing = { started_at: new Date(took.startedAt).toISOString(), duration: took.duration }
  const said = { step, text, tool_calls: [], finish_reason: finishReason, usage, ...timing, ...changesIn(prepared) }
  const stepDone = (purpose: StepPurpose): RunEvent => ({ kind: 'step.completed', data: { ...said, ...purpose } })
  const progress = await question.commit(isAnswer ? text : '', stepDone, { ...spend(session, usage), steps: 1 })
  session.question = null
  return progress
}

const changesIn = ({ changes }: Prepared) => (changes === undefined ? {} : { request_changes: changes })

/** Middleware may take a tool out of the request. The model's calls of that tool are then calls of an unknown name. */
function offeredTools({ stage }: Session, { tools }: ModelRequest): StageTools['byName'] {
  if (tools === stage.faces) return stage.byName
  const names = new Set(tools.map(({ name }) => name))
  return new Map([...stage.byName].filter(([name]) => names.has(name)))
}

const TOO_DEEP = {
  message: 'This call was not made: it is one round of calls too many.',
  blocked: 'recursion_limit',
} as const

const tooDeep = ({ recursion_limit: limit }: Session['settings']): string =>
  `RECURSION_LIMIT_EXCEEDED: the agent called tools in more than ${limit} steps in a row.`

/** After its limit, and after an ending that is none, a run makes no call any more. */
function refusalOf(windDown: WindDown, ending: string): { message: string; blocked: WindDown } | null {
  if (windDown) return { message: 'The run has reached its limit: this call was not made.', blocked: windDown }
  return ending === 'fail' ? { message: 'The answer was cut off: this call was not made.', blocked: null } : null
}

/** The last thing this owner writes. */
export async function leave(
  session: Session,
  end: End,
  events: readonly RunEvent[] = [],
  change = {},
): Promise<Progress> {
  await append(session, [...events, end.event], withChange(change, end.set))
  await fault('final.after_commit')
  return 'left'
}

/** A reservation settles, at the latest when its owner is found dead; asked again then, or in a second. */
async function waitForBudget(session: Session): Promise<Progress> {
  await append(session, [{ kind: 'run.parked', data: { waits_for: 'budget' } }], {
    set: { waits_for: 'budget', release: true, ready_in_ms: 1_000 },
  })
  session.deps.onReady(1_000)
  return 'left'
}

/** Its owner died with a call under way, perhaps: the tokens were spent, and the text that was shown is void. */
async function noteLostCall(session: Session): Promise<void> {
  const { state } = session
  if (!state.mayHaveLostCall) return
  const usage: StepUsage = {
    input_tokens: promptTokens(session),
    output_tokens: 0,
    estimated: true,
    cost_usd: costOf(session.model.price, promptTokens(session), 0),
  }
  await append(session, [{ kind: 'step.restarted', data: { step: state.steps + 1, reason: 'crash', usage } }], {
    inputTokens: usage.input_tokens,
    ...(usage.cost_usd === null ? {} : { costUsd: usage.cost_usd }),
    set: { usage_estimated: true },
  })
}

function priced(session: Session, { usage }: ModelOutcome): StepUsage {
  return {
    input_tokens: Math.ceil(usage.inputTokens),
    output_tokens: Math.ceil(usage.outputTokens),
    estimated: usage.isEstimated,
    cost_usd: costOf(session.model.price, usage.inputTokens, usage.outputTokens),
  }
}

function endOf({ state, run }: Session, verdict: Extract<CallVerdict, { verdict: 'stop' }>): End {
  const text = state.text || null
  if (verdict.reason === 'budget' && run.task_id !== null) return waiting('budget', [], run.signals)
  switch (verdict.status) {
    case 'cancelled':
      return cancelled(text)
    case 'failed':
      return failed(verdict.reason, 'The agent has used up its token allocation.', text)
    case 'paused':
      return stopped(verdict.reason, text)
  }
}
