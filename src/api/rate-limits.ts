// Requests with a known key are counted by that key, deliveries to a hook by that hook, all others by their address, in
// windows of a second. Each process counts its own requests. This is own code because @fastify/rate-limit 11 hands out
// one mutable counter and reads it a tick later, so it refuses the whole of a burst instead of the part over the limit
// (tried), and because it costs two promises a request.
import ipaddr from 'ipaddr.js'
import { type MusterError, rateLimited } from '../kernel/errors.ts'
import { putNewest } from '../kernel/put-newest.ts'

/** Each call counts one request and throws RATE_LIMITED when there were too many. */
export interface RateLimits {
  countAddress(address: string): void
  /** Throws when the address has used up its share, and counts nothing. */
  requireAddress(address: string): void
  countKey(keyId: string): void
  /** Counts deliveries with a valid proof, by hook. */
  countHook(hookId: string): void
  /** Counts keys that had to be looked up, by address: guessing keys must not cost the database more than this. */
  countLookup(address: string): void
  /** Counts tries at passwords and one-time links, by address: guessing stays slow whatever else is varied. */
  countTry(address: string): void
  /** Counts tries at the password of one account; a client the account knows is counted apart from all others. */
  countAccount(account: string, knownClient: string | null): void
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
  const byHook = createCounter(perSecond, 1_000, now)
  const byLookup = createCounter(perSecond, 1_000, now)
  const bySignIn = createCounter(signInsPerMinute, 60_000, now)
  return {
    countAddress: (address) => byAddress.count(clientOf(address)),
    requireAddress: (address) => byAddress.require(clientOf(address)),
    countKey: byKey.count,
    countHook: byHook.count,
    countLookup: (address) => byLookup.count(clientOf(address)),
    countTry: (address) => bySignIn.count(`address ${clientOf(address)}`),
    countAccount: (account, knownClient) => bySignIn.count(`account ${account.toLowerCase()} ${knownClient ?? ''}`),
  }
}

/** One IPv6 client has a network of 64 bits to send from; without this it would have a share per address. */
export function clientOf(address: string): string {
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return address
  const parsed = ipaddr.IPv6.parse(address)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16))
  return `${network.join(':')}::/64`
}

const MOST_NAMES = 50_000

interface Counter {
  /** Throws once there were more than the limit in the window. */
  count(name: string): void
  /** Throws when one more would be too many. */
  require(name: string): void
}

function createCounter(limit: number, windowMs: number, now: () => number): Counter {
  if (limit === 0) return { count: () => {}, require: () => {} }
  const windows = new Map<string, { until: number; count: number }>()
  return {
    count: (name) => {
      const nowMs = now()
      const window = windows.get(name)
      if (!window || window.until <= nowMs) {
        // This bounds the memory under any load: the windows are in the order of their ends.
        putNewest(windows, name, { until: nowMs + windowMs, count: 1 }, MOST_NAMES)
      } else if (++window.count > limit) {
        throw limitedUntil(window.until, nowMs)
      }
    },
    require: (name) => {
      const nowMs = now()
      const window = windows.get(name)
      if (window && window.until > nowMs && window.count >= limit) throw limitedUntil(window.until, nowMs)
    },
  }
}

const limitedUntil = (until: number, nowMs: number): MusterError => rateLimited(Math.ceil((until - nowMs) / 1_000))
