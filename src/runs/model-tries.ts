// The tries of the model call that is due, as the journal tells them: they survive restarts of the process.
import type { RunEvent } from '../kernel/run-event.ts'

export interface ModelTries {
  attempts: number
  /** The waits of the quick retries in all. */
  waitedMs: number
  /** The number of times that the call has waited for its provider. */
  providerWaits: number
  /** The instants of the first failed try, of the last wait, and of the end of the wait that the provider asked for. */
  firstFailedAt: number | null
  lastWaitAt: number | null
  notBeforeAt: number
  /** Of the last wait: whether it was for no turn, the provider's words, and the signals that the run knew of. */
  waitsAlone: boolean
  waitMessage: string
  waitSignals: number
}

export const noTries = (): ModelTries => ({
  attempts: 0,
  waitedMs: 0,
  providerWaits: 0,
  firstFailedAt: null,
  lastWaitAt: null,
  notBeforeAt: 0,
  waitsAlone: false,
  waitMessage: '',
  waitSignals: 0,
})

/** The next model call is another one than the call that failed. */
export function forgetTries(tries: ModelTries): void {
  Object.assign(tries, noTries())
}

type Restarted = Extract<RunEvent, { kind: 'step.restarted' }>['data']
type Paused = Extract<RunEvent, { kind: 'run.paused' }>['data']

export function noteFailedTry(tries: ModelTries, { attempt, wait }: Restarted, at: number): void {
  tries.attempts = attempt ?? tries.attempts + 1
  tries.waitedMs += wait ?? 0
  tries.firstFailedAt ??= at
}

/** A run that joins those that wait has not tried yet: its patience counts from then on. */
export function noteProviderWait(
  tries: ModelTries,
  { provider_wait: wait, error_message: message = '' }: Paused,
  at: number,
): void {
  if (!wait) return
  const { waits, retry_after: retryAfterMs = 0, signals = 0 } = wait
  tries.providerWaits = waits
  tries.lastWaitAt = at
  tries.firstFailedAt ??= at
  tries.waitsAlone = wait.wait !== undefined
  tries.waitMessage = message
  tries.waitSignals = signals
  tries.notBeforeAt = Math.max(tries.notBeforeAt, at + retryAfterMs)
}
