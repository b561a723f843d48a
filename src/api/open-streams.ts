import type { FastifyReply } from 'fastify'
import { MusterError } from '../kernel/errors.ts'
import { isInstanceAdmin, type Principal } from '../kernel/principal.ts'

export interface OpenStreams {
  /** Counts one until its connection is closed, however that comes about. Throws where there are too many. */
  open(principal: Principal, reply: FastifyReply): void
}

/** As the contract says; of all kinds together, in this process. */
export const STREAMS_PER_KEY = 500
/** A stream that ends leaves its place at once; whoever closes some may come back soon. */
const RETRY_AFTER_S = 5

/** Each holds a connection and a place among those who are told what happens: no key or person may have them all. */
export function createOpenStreams(most = STREAMS_PER_KEY): OpenStreams {
  const counts = new Map<string, number>()
  return {
    open: (principal, { raw }) => {
      if (isInstanceAdmin(principal) || raw.destroyed) return
      const name = `${principal.type} ${principal.id}`
      const before = counts.get(name) ?? 0
      if (before >= most) {
        const message = `${most} streams are open with these credentials. Close some, or try again later.`
        throw new MusterError('RATE_LIMITED', message, { retryAfterS: RETRY_AFTER_S })
      }
      counts.set(name, before + 1)
      raw.once('close', () => {
        const left = (counts.get(name) ?? 1) - 1
        if (left === 0) counts.delete(name)
        else counts.set(name, left)
      })
    },
  }
}
