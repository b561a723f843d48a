// The retries of a failed model call, the same for runs and for functions of flows.

const MOST_RETRIES = 4
const MOST_WAITING_MS = 60_000
const FIRST_BACKOFF_MS = 500

export interface FailedTry {
  isRetryable: boolean
  retryAfterMs: number | null
}

export interface Tries {
  attempts: number
  waitedMs: number
  firstBackoffMs?: number | undefined
}

/** The wait before the next try; null if there is none. Retry-After is honoured if all waits stay within a minute. */
export function retryWaitMs({ isRetryable, retryAfterMs }: FailedTry, tries: Tries): number | null {
  const { attempts, waitedMs, firstBackoffMs = FIRST_BACKOFF_MS } = tries
  if (!isRetryable || attempts >= MOST_RETRIES) return null
  const jitter = 0.75 + Math.random() / 2
  const waitMs = Math.round(Math.max(retryAfterMs ?? 0, firstBackoffMs * 2 ** attempts * jitter))
  return waitedMs + waitMs > MOST_WAITING_MS ? null : waitMs
}

export const triedOften = (attempts: number): string => (attempts > 0 ? ` (tried ${attempts + 1} times)` : '')
