import type { RunChange } from '../journal/run-change.ts'
import type { ModelOutcome } from '../kernel/model-call.ts'
import { type FailedTry, type FailureVerdict, judgeFailure, retryWaitMs } from '../kernel/retry.ts'
import type { StepUsage } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { isSupervisor } from '../kernel/supervisor.ts'
import { isBehindRequest } from './behind-request.ts'
import { type End, leave, runFailed, runUnavailable, stopped } from './end.ts'
import { append, chosenModel, type OwnedRun, remainingMs, spend, withChange } from './owned-run.ts'
import { mayWait, tried, triedForMs, waitForProvider } from './wait-for-provider.ts'

/** A longer wait holds no slot. */
const PARK_ABOVE_MS = 1_000

export interface FailedCall {
  outcome: Extract<ModelOutcome, { kind: 'failed' }>
  usage: StepUsage
  step: number
  windDown: 'step_limit' | 'timeout' | null
  /** The end of the run if the provider refuses the call; by default the run fails. */
  ifLost?: () => End
}

/** The call is made again, after a while, or the run ends. The cost of the call is counted either way. */
export async function afterFailure(owned: OwnedRun, failure: FailedCall): Promise<'again' | 'left'> {
  const { outcome, usage } = failure
  const change = spend(owned, usage)
  const judged = judge(owned, failure)
  switch (judged.verdict) {
    case 'fail':
      return leave(owned, endOfFailure(owned, failure), [], change)
    case 'compact':
      if (failure.ifLost) return leave(owned, endOfFailure(owned, failure), [], change)
      await append(owned, [restarted(owned, failure, { reason: 'too_long' })], change)
      return 'again'
    case 'retry':
      return waitAndRetry(
        owned,
        restarted(owned, failure, { reason: 'failed', wait: judged.waitMs }),
        change,
        judged.waitMs,
      )
    case 'wait': {
      const events = [restarted(owned, failure, { reason: 'failed' })]
      const { message, retryAfterMs } = outcome
      return waitForProvider(owned, { events, change, message, retryAfterMs, waitMs: judged.waitMs })
    }
  }
}

function judge(owned: OwnedRun, { outcome }: FailedCall): FailureVerdict {
  const { state, settings, deps, run } = owned
  // The prompt of a node has no history that could be shortened.
  if (outcome.reason === 'context' && isSupervisor(run.part)) return { verdict: 'fail' }
  return judgeFailure(outcome, {
    attempts: state.attempts,
    waitedMs: state.waitedMs,
    firstBackoffMs: deps.firstBackoffMs,
    waits: state.providerWaits,
    isAway: deps.outages.isAway(chosenModel(owned)),
    triedForMs: triedForMs(owned),
    patienceMs: settings.model_patience,
    leftMs: remainingMs(owned, settings.grace_period),
    mayWait: mayWait(owned),
  })
}

function restarted(
  { state }: OwnedRun,
  { outcome, usage, step }: FailedCall,
  how: { reason: 'failed' | 'too_long'; wait?: number },
): RunEvent {
  const { message, text } = outcome
  const attempt = state.attempts + 1
  return {
    kind: 'step.restarted',
    data: { step, message, usage, attempt, ...how, ...(text ? { text } : {}) },
  }
}

/** Commits that something is tried again, and waits: in the run's slot if the wait is short. */
export async function waitAndRetry(
  owned: OwnedRun,
  restarted: RunEvent,
  change: RunChange,
  waitMs: number,
): Promise<'again' | 'left'> {
  if (waitMs > PARK_ABOVE_MS) {
    const parked: RunEvent = { kind: 'run.parked', data: { waits_for: 'backoff' } }
    await append(owned, [restarted, parked], {
      ...withChange(change, { waits_for: 'backoff', release: true, ready_in_ms: waitMs }),
    })
    owned.deps.onReady(waitMs)
    return 'left'
  }
  await append(owned, [restarted], change)
  await pause(owned, waitMs)
  return 'again'
}

/** Of a library that is away: null if it is not asked again, or not in time. */
export function waitBefore(owned: OwnedRun, failure: FailedTry): number | null {
  const { state, deps, settings } = owned
  const waitMs = retryWaitMs(failure, { ...state, firstBackoffMs: deps.firstBackoffMs })
  const leftMs = remainingMs(owned, settings.grace_period)
  return waitMs !== null && leftMs !== null && waitMs >= leftMs ? null : waitMs
}

function endOfFailure(owned: OwnedRun, { outcome, windDown, ifLost }: FailedCall): End {
  const { state, run } = owned
  const text = outcome.text || state.text || null
  // The limit was reached before the provider failed: the run pauses, with the text so far.
  if (windDown) return stopped(windDown, text)
  const message = `${outcome.message}${tried(owned)}`
  const mayPass = outcome.isRetryable || outcome.reason === 'quota'
  if (ifLost && !mayPass) return ifLost()
  return isBehindRequest(run) && mayPass ? runUnavailable(owned, message) : runFailed('MODEL_ERROR', message, text)
}

async function pause(owned: OwnedRun, waitMs: number): Promise<void> {
  const { signal, end } = owned.control.signalFor(remainingMs(owned))
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, waitMs)
  signal.addEventListener('abort', () => resolve(), { once: true })
  if (signal.aborted) resolve()
  await promise
  clearTimeout(timer)
  end()
}
