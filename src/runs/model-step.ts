// One step: the guards are asked, the model is called once, and its answer is committed together with the announcement
// of the tool calls that follow from it.
import type { Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { guardMonth } from '../journal/month.ts'
import { type Reservation, reserveTokens, wakeBudgetWaiters } from '../journal/reserve.ts'
import { costOf } from '../kernel/cost.ts'
import { fault } from '../kernel/fault.ts'
import { type CallVerdict, guardBudget, guardModelCall, judgeEnding } from '../kernel/guards.ts'
import type { ModelOutcome } from '../kernel/model-call.ts'
import type { StepUsage } from '../kernel/run.ts'
import type { OpeningStep, RunEvent } from '../kernel/run-event.ts'
import { noteMarks } from './budget-marks.ts'
import { compactHistory } from './compact.ts'
import { cancelled, type End, failed, stopped, waiting } from './end.ts'
import { judgeCalls } from './judge-calls.ts'
import { commitDecision } from './opening.ts'
import { parkForMonth } from './park.ts'
import { nextRequest, promptTokens } from './prompt.ts'
import { afterFailure } from './retry-step.ts'
import { append, elapsedMs, remainingMs, type Session, spend, withChange } from './session.ts'
import { commitWithCalls } from './settle-calls.ts'
import { nextStage } from './stages.ts'

/** again: the loop goes on · left: the run has ended, parked or was handed back, and is no longer this process's. */
export type Progress = 'again' | 'left'

type WindDown = 'step_limit' | 'timeout' | null

export async function takeStep(session: Session): Promise<Progress> {
  const verdict = await askGuards(session)
  switch (verdict.verdict) {
    case 'go':
      return callModel(session, null)
    case 'wind_down':
      session.question = null
      return callModel(session, verdict.reason)
    case 'compact':
      return compactHistory(session)
    case 'wait':
      // The loop parks a run of a halted project before anything else.
      return verdict.reason === 'halted' ? 'again' : waitForBudget(session)
    case 'next_month':
      return (await parkForMonth(session, verdict.inMs)) ? 'left' : 'again'
    case 'stop':
      return leave(session, endOf(session, verdict))
  }
}

async function askGuards(session: Session): Promise<CallVerdict> {
  const { state, run, settings, deps, control, agent } = session
  const verdict = guardModelCall({
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
  const makesCall = verdict.verdict === 'go' || verdict.verdict === 'wind_down' || verdict.verdict === 'compact'
  if (!makesCall || (agent.token_allocation === null && !isMonthLimited(session))) return verdict
  const budget = await reserve(session)
  return budget.verdict === 'go' ? verdict : budget
}

/** A limit holds for runs under way, too, as soon as this process has heard of it. */
const isMonthLimited = ({ settings, deps, run }: Session): boolean =>
  settings.monthly_token_limit !== null || deps.isMonthLimited(run.project_id)

/** Counted before the call: all runs of an agent together overshoot its allocation by one call at most. */
async function reserve(session: Session): Promise<CallVerdict> {
  const { run, deps, state, agent } = session
  const bound = promptTokens(session) + (agent.model?.max_output_tokens ?? 4_096)
  const wanted = { agentId: run.agent_id, bound, runId: run.id, fence: run.fence }
  const facts = isMonthLimited(session)
    ? await reserveWithin(deps.pool, run.project_id, wanted)
    : await reserveTokens(deps.pool, wanted)
  if (facts && 'verdict' in facts) return facts
  if (facts?.isAdmitted) {
    session.reserved = bound
    return { verdict: 'go' }
  }
  if (!facts) return { verdict: 'stop', status: 'paused', reason: 'budget' }
  const { allocation, used, reserved } = facts
  // The run of a task waits for tokens, even before its first call.
  const isFirstCall = state.ownSteps === 0 && run.task_id === null
  return guardBudget({ allocation, used, reserved, bound, isFirstCall })
}

/** As `reserveTokens`, within the tokens of the project's month: all its calls together overshoot by one at most. */
async function reserveWithin(
  pool: Pool,
  projectId: string,
  wanted: Parameters<typeof reserveTokens>[1],
): Promise<Reservation | CallVerdict | null> {
  return inTransaction(pool, async (tx) => {
    const verdict = await guardMonth(tx, projectId, wanted.bound)
    return verdict.verdict === 'go' ? reserveTokens(tx, wanted) : verdict
  })
}

async function callModel(session: Session, windDown: WindDown): Promise<Progress> {
  const { state, control, settings, run, deps } = session
  await noteLostCall(session)
  const step = state.steps + 1
  const startedAt = Date.now()
  const began = performance.now()
  const call = control.signalFor(remainingMs(session, windDown ? settings.grace_period : 0), 'model')
  let offset = 0
  const outcome = await session.model.call(nextRequest(session, windDown), {
    signal: call.signal,
    onText: (text) => {
      void fault('llm.mid_stream')
      deps.onText(run.id, step, offset, text)
      offset += text.length
    },
  })
  call.end()
  await fault('llm.after_reply_before_commit')
  const took = { startedAt, duration: Math.round(performance.now() - began) }
  const usage = priced(session, outcome)
  const progress = await react(session, { outcome, usage, step, windDown, took, cause: call.cause() })
  await settleBudget(session)
  return progress
}

interface Reply {
  outcome: ModelOutcome
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
  const isSilent = outcome.finishReason === 'stop' && outcome.text === ''
  if (session.question && isSilent) return decide(session, session.question, { ...reply, outcome })
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
  const { outcome, ending, step, usage, windDown, took } = reply
  const { state, question } = session
  if (question) return decide(session, question, reply)
  const text = outcome.text || state.text
  const refuseAll = refusalOf(windDown, ending.ending)
  const judged = judgeCalls(session, outcome.calls, { step, text, refuseAll })
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
    },
  }
  const change = { ...spend(session, usage), steps: 1 }
  const events = [stepDone, ...judged.events]
  if (windDown) return leave(session, stopped(windDown, text), events, change)
  if (ending.ending === 'fail')
    return leave(session, failed('MODEL_ERROR', ending.message, text || null), events, change)
  if (judged.end) return leave(session, judged.end, events, change)
  if (ending.ending === 'complete') {
    const next = nextStage(session, outcome.text)
    if (next.end) return leave(session, next.end, [stepDone], change)
    await append(session, [stepDone, next.event], change)
    return 'again'
  }
  if (changesNothing(judged.events)) await commitWithCalls(session, events, change)
  else await append(session, events, change)
  await fault('step.after_commit')
  return 'again'
}

/** The answer to a question before the work. A reply that was cut off or that called tools is no answer. */
function decide(
  session: Session,
  question: NonNullable<Session['question']>,
  { outcome, step, usage, took }: Pick<Reply, 'step' | 'usage' | 'took'> & { outcome: Answered },
): Promise<Progress> {
  const { text, calls, finishReason } = outcome
  const isWhole = judgeEnding(finishReason, calls.length, text).ending === 'complete'
  const timing = { started_at: new Date(took.startedAt).toISOString(), duration: took.duration }
  const said = { step, text, tool_calls: [], finish_reason: finishReason, usage, ...timing }
  const stepDone = (decision: OpeningStep): RunEvent => ({ kind: 'step.completed', data: { ...said, decision } })
  return commitDecision(session, question, isWhole ? text : '', stepDone, { ...spend(session, usage), steps: 1 })
}

type Answered = Extract<ModelOutcome, { kind: 'answered' }>

const changesNothing = (events: readonly RunEvent[]): boolean =>
  events.every((event) => event.kind !== 'tool.started' || event.data.effect === 'readonly')

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

async function settleBudget(session: Session): Promise<void> {
  const { agent, deps, run } = session
  if (agent.token_allocation === null && !isMonthLimited(session)) return
  if (agent.token_allocation !== null) await noteMarks(deps, run)
  if ((await wakeBudgetWaiters(deps.pool, run.agent_id)) > 0) deps.onReady()
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
