// Requests with a known key are counted by that key, all others by their address, in windows of a second, in this process; behind several, each counts its
// own. Own code instead of @fastify/rate-limit 11: its store hands out one mutable counter and reads it a tick later, so
// of a burst over the limit all are refused instead of those over it (tried), and it costs two promises a request.
import { rateLimited } from '../kernel/errors.ts'

/** Each call counts one request and throws RATE_LIMITED when there were too many. */
export interface RateLimits {
  countAddress(address: string): void
  countKey(keyId: string): void
  /** Keys that had to be looked up, by address: guessing keys must not cost the database more than this. */
  countLookup(address: string): void
  /** Sign-in attempts, by address and by account: guessing stays slow whichever is varied. */
  countSignIn(address: string, account: string): void
}

/** 0 means no limit. */
export function createRateLimits({
  perSecond,
  signInsPerMinute,
  now = Date.now,
}: {
  perSecond: number
  signInsPerMinute: number
  now?: () => number
}): RateLimits {
  const byAddress = createCounter(perSecond, 1_000, now)
  const byKey = createCounter(perSecond, 1_000, now)
  const byLookup = createCounter(perSecond, 1_000, now)
  const bySignIn = createCounter(signInsPerMinute, 60_000, now)
  return {
    countAddress: byAddress,
    countKey: byKey,
    countLookup: byLookup,
    countSignIn: (address, account) => {
      bySignIn(`address ${address}`)
      bySignIn(`account ${account.toLowerCase()}`)
    },
  }
}

const MOST_NAMES = 50_000

function createCounter(limit: number, windowMs: number, now: () => number): (name: string) => void {
  if (limit === 0) return () => {}
  const windows = new Map<string, { until: number; count: number }>()
  return (name) => {
    const nowMs = now()
    const window = windows.get(name)
    if (!window || window.until <= nowMs) {
      if (windows.size >= MOST_NAMES) forgetEnded(windows, nowMs)
      windows.set(name, { until: nowMs + windowMs, count: 1 })
    } else if (++window.count > limit) {
      throw rateLimited(Math.ceil((window.until - nowMs) / 1_000))
    }
  }
}

/** Bounds the memory whatever is thrown at us; with that many names in one window, all begin anew. */
function forgetEnded(windows: Map<string, { until: number }>, nowMs: number): void {
  for (const [name, window] of windows) if (window.until <= nowMs) windows.delete(name)
  if (windows.size >= MOST_NAMES) windows.clear()
}
