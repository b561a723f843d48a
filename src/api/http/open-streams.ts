import type { FastifyReply } from 'fastify'
import { MusterError } from '../../kernel/errors.ts'
import { isInstanceAdmin, type Principal } from '../../kernel/principal.ts'

export interface OpenStreams {
  /**
   * Counts one stream until its connection closes. Throws RATE_LIMITED when there are too many, so a route that changes
   * something calls it before the change.
   */
  open(principal: Principal, reply: FastifyReply): void
}

/** The number that the contract gives, for streams of all kinds together in this process. */
export const STREAMS_PER_KEY = 500
/** The wait is short, because a stream that ends frees its place at once. */
const RETRY_AFTER_S = 5

/** A stream holds a connection and a watcher of the hub, so no key or person may take them all. */
export function createOpenStreams(most = STREAMS_PER_KEY): OpenStreams {
  const counts = new Map<string, number>()
  const counted = new WeakSet<object>()
  return {
    open: (principal, { raw }) => {
      if (isInstanceAdmin(principal) || raw.destroyed || counted.has(raw)) return
      const name = `${principal.type} ${principal.id}`
      const before = counts.get(name) ?? 0
      if (before >= most) {
        const message = `${most} streams are open with these credentials. Close some, or try again later.`
        throw new MusterError('RATE_LIMITED', message, { retryAfterS: RETRY_AFTER_S })
      }
      counts.set(name, before + 1)
      counted.add(raw)
      raw.once('close', () => {
        const left = (counts.get(name) ?? 1) - 1
        if (left === 0) counts.delete(name)
        else counts.set(name, left)
      })
    },
  }
}
