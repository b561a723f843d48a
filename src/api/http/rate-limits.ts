// Requests with a known key are counted by that key, deliveries by their hook, all others by their address, in windows
// of a second, in each process. @fastify/rate-limit 11 is not used: it hands out one mutable counter and reads it a
// tick later, so it refuses the whole of a burst (tried), and it costs two promises a request.
import ipaddr from 'ipaddr.js'
import { type MusterError, rateLimited } from '../../kernel/errors.ts'
import { putNewest } from '../../kernel/put-newest.ts'

/** Each call counts one request and throws RATE_LIMITED when there were too many. */
export interface RateLimits {
  countAddress(address: string): void
  /** Throws when the address has used up its share, and counts nothing. */
  requireAddress(address: string): void
  countKey(keyId: string): void
  /** Counts deliveries with a valid proof, by hook. */
  countHook(hookId: string): void
  /** Counts keys that had to be looked up, by address, so that guessed keys cost the database no more than this. */
  countLookup(address: string): void
  /** Counts tries at passwords and one-time links, by address, so that guessing stays slow in every way. */
  countTry(address: string): void
  /** Counts tries at the password of one account. A client that the account knows is counted apart from all others. */
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

/**
 * One IPv6 client can send from a whole network of 64 bits, so the network is counted. A connection that is closed
 * already has no address, though the types of the server say that it has one.
 */
export function clientOf(address: string | undefined): string {
  if (address === undefined) return 'gone'
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return address
  const parsed = ipaddr.IPv6.parse(address)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16))
  return `${network.join(':')}::/64`
}

const MOST_NAMES = 50_000

interface Counter {
  count(name: string): void
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
        // The windows are in the order of their ends, so the memory stays bounded under any load.
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
