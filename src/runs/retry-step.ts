import type { RunChange } from '../journal/run-change.ts'
import type { ModelOutcome } from '../kernel/model-call.ts'
import { type FailedTry, retryWaitMs, triedOften } from '../kernel/retry.ts'
import type { StepUsage } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { type End, leave, runFailed, runUnavailable, stopped } from './end.ts'
import { append, type OwnedRun, remainingMs, spend, withChange } from './owned-run.ts'

/** A longer wait holds no slot. */
const PARK_ABOVE_MS = 1_000

export interface FailedCall {
  outcome: Extract<ModelOutcome, { kind: 'failed' }>
  usage: StepUsage
  step: number
  windDown: 'step_limit' | 'timeout' | null
}

/** The call is made again, after a while, or the run ends. The cost of the call is counted either way. */
export async function afterFailure(owned: OwnedRun, failure: FailedCall): Promise<'again' | 'left'> {
  const { outcome, usage, step } = failure
  const { state } = owned
  const change = spend(owned, usage)
  const waitMs = waitBefore(owned, outcome)
  if (waitMs === null) return leave(owned, endOfFailure(owned, failure), [], change)
  const restarted: RunEvent = {
    kind: 'step.restarted',
    data: {
      step,
      reason: 'failed',
      message: outcome.message,
      usage,
      attempt: state.attempts + 1,
      wait: waitMs,
      ...(outcome.text ? { text: outcome.text } : {}),
    },
  }
  return waitAndRetry(owned, restarted, change, waitMs)
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

/** Null if the call is not made again, or not in time. */
export function waitBefore(owned: OwnedRun, failure: FailedTry): number | null {
  const { state, deps, settings } = owned
  const waitMs = retryWaitMs(failure, { ...state, firstBackoffMs: deps.firstBackoffMs })
  const leftMs = remainingMs(owned, settings.grace_period)
  return waitMs !== null && leftMs !== null && waitMs >= leftMs ? null : waitMs
}

function endOfFailure(owned: OwnedRun, { outcome, windDown }: FailedCall): End {
  const { state, run } = owned
  const text = outcome.text || state.text || null
  // The limit was reached before the provider failed: the run pauses, with the text so far.
  if (windDown) return stopped(windDown, text)
  if (run.part !== null && outcome.isRetryable) {
    return runUnavailable(owned, `${outcome.message}${triedOften(state.attempts)}`)
  }
  return runFailed('MODEL_ERROR', `${outcome.message}${triedOften(state.attempts)}`, text)
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
