import type { RunChange } from '../journal/run-change.ts'
import type { ModelOutcome } from '../kernel/model-call.ts'
import { type FailedTry, retryWaitMs, triedOften } from '../kernel/retry.ts'
import type { StepUsage } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { type End, failed, stopped, unavailable } from './end.ts'
import { append, remainingMs, type Session, spend, withChange } from './session.ts'

/** A longer wait holds no slot. */
const PARK_ABOVE_MS = 1_000

export interface FailedCall {
  outcome: Extract<ModelOutcome, { kind: 'failed' }>
  usage: StepUsage
  step: number
  windDown: 'step_limit' | 'timeout' | null
}

/** The call is made again, after a while, or the run ends. The cost of the call is counted either way. */
export async function afterFailure(session: Session, failure: FailedCall): Promise<'again' | 'left'> {
  const { outcome, usage, step } = failure
  const { state } = session
  const change = spend(session, usage)
  const waitMs = waitBefore(session, outcome)
  if (waitMs === null) {
    const end = giveUp(session, failure)
    await append(session, [end.event], withChange(change, end.set))
    return 'left'
  }
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
  return waitAndRetry(session, restarted, change, waitMs)
}

/** Commits that something is tried again, and waits for so long: in its slot where the wait is short. */
export async function waitAndRetry(
  session: Session,
  restarted: RunEvent,
  change: RunChange,
  waitMs: number,
): Promise<'again' | 'left'> {
  if (waitMs > PARK_ABOVE_MS) {
    const parked: RunEvent = { kind: 'run.parked', data: { waits_for: 'backoff' } }
    await append(session, [restarted, parked], {
      ...withChange(change, { waits_for: 'backoff', release: true, ready_in_ms: waitMs }),
    })
    session.deps.onReady(waitMs)
    return 'left'
  }
  await append(session, [restarted], change)
  await pause(session, waitMs)
  return 'again'
}

/** Null: the call is not made again, or not before the run's time is up. */
export function waitBefore(session: Session, failure: FailedTry): number | null {
  const { state, deps, settings } = session
  const waitMs = retryWaitMs(failure, { ...state, firstBackoffMs: deps.firstBackoffMs })
  const leftMs = remainingMs(session, settings.grace_period)
  return waitMs !== null && leftMs !== null && waitMs >= leftMs ? null : waitMs
}

function giveUp(session: Session, { outcome, windDown }: FailedCall): End {
  const { state, run } = session
  const text = outcome.text || state.text || null
  // The limit was reached before the provider failed: the run pauses, with the text so far.
  if (windDown) return stopped(windDown, text)
  if (run.part !== null && outcome.isRetryable) {
    return unavailable(session, `${outcome.message}${triedOften(state.attempts)}`)
  }
  return failed('MODEL_ERROR', `${outcome.message}${triedOften(state.attempts)}`, text)
}

async function pause(session: Session, waitMs: number): Promise<void> {
  const { signal, end } = session.control.signalFor(remainingMs(session))
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, waitMs)
  signal.addEventListener('abort', () => resolve(), { once: true })
  if (signal.aborted) resolve()
  await promise
  clearTimeout(timer)
  end()
}
