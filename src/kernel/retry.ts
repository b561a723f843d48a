// The one decision about a failed model call, for runs and for functions of flows: is it made again after a moment, does
// its maker wait for the provider, is the history shortened, or has the call failed.

const MAX_RETRIES = 4
const MAX_RETRY_WAITS_MS = 60_000
const FIRST_BACKOFF_MS = 500
const FIRST_WAIT_MS = 2_000
const MAX_WAIT_MS = 300_000

export interface FailedTry {
  isRetryable: boolean
  retryAfterMs: number | null
  /** quota: the quota is used up · context: the request is too long for the model. */
  reason?: 'quota' | 'context' | undefined
}

export interface Tries {
  attempts: number
  waitedMs: number
  firstBackoffMs?: number | undefined
}

export interface TriesSoFar extends Tries {
  /** The number of times that this call has waited for its provider. */
  waits: number
  /** True if the provider is known to be away: quick retries would only add to its load. */
  isAway: boolean
  /** The time since the first failed try of this call. */
  triedForMs: number
  patienceMs: number
  /** The time until the deadline of the run; null if it has none. The time in a wait does not count for it. */
  leftMs: number | null
  /** False if nobody would wait for the answer that long: a request, an eval. */
  mayWait: boolean
}

/** retry: try again after this time · wait: hold nothing, not before this time · compact: shorten the history. */
export type FailureVerdict =
  | { verdict: 'retry'; waitMs: number }
  | { verdict: 'wait'; waitMs: number }
  | { verdict: 'compact' }
  | { verdict: 'fail' }

export function judgeFailure(failure: FailedTry, tries: TriesSoFar): FailureVerdict {
  const { waits, isAway, triedForMs, patienceMs, leftMs } = tries
  const mayWait = tries.mayWait && patienceMs > 0
  if (failure.reason === 'context') return { verdict: 'compact' }
  const isQuota = failure.reason === 'quota'
  if (!failure.isRetryable && !isQuota) return { verdict: 'fail' }
  const isQuick = !isQuota && (!mayWait || (waits === 0 && !isAway && triedForMs < MAX_RETRY_WAITS_MS))
  const retryMs = isQuick ? retryWaitMs(failure, tries) : null
  if (retryMs !== null && (leftMs === null || retryMs < leftMs)) return { verdict: 'retry', waitMs: retryMs }
  if (!mayWait || triedForMs >= patienceMs) return { verdict: 'fail' }
  return { verdict: 'wait', waitMs: Math.max(failure.retryAfterMs ?? 0, jittered(backoffMs(waits))) }
}

/** The wait before the next quick try; null if there is none. Retry-After is honoured if all waits stay within a minute. */
export function retryWaitMs({ isRetryable, retryAfterMs }: FailedTry, tries: Tries): number | null {
  const { attempts, waitedMs, firstBackoffMs = FIRST_BACKOFF_MS } = tries
  if (!isRetryable || attempts >= MAX_RETRIES) return null
  const waitMs = Math.max(retryAfterMs ?? 0, jittered(firstBackoffMs * 2 ** attempts))
  return waitedMs + waitMs > MAX_RETRY_WAITS_MS ? null : waitMs
}

/** The wait after this many earlier waits: from 2 s, doubling to 5 min. */
export const backoffMs = (waits: number): number => Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(waits, 30))

const jittered = (ms: number): number => Math.round(ms * (0.75 + Math.random() / 2))

/** The end of a sentence about a call that failed for good. */
export function triedOften(attempts: number, triedForMs = 0): string {
  if (attempts === 0 && triedForMs < 1_000) return ''
  const often = attempts === 0 ? 'tried once' : `tried ${attempts + 1} times`
  return triedForMs < 1_000 ? ` (${often})` : ` (${often} in ${inWords(triedForMs)})`
}

function inWords(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}
