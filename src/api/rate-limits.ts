import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { rateLimited } from '../kernel/errors.ts'

/** Each call counts one request and throws RATE_LIMITED when there were too many. */
export interface RateLimits {
  countAddress(request: FastifyRequest): Promise<void>
  countKey(request: FastifyRequest, keyId: string): Promise<void>
  /** Sign-in attempts, by address and by account: guessing stays slow whichever is varied. */
  countSignIn(request: FastifyRequest, email: string): Promise<void>
}

/** 0 means no limit. Counted in this process; behind several, each counts its own. */
export async function createRateLimits(
  app: FastifyInstance,
  { perSecond, signInsPerMinute }: { perSecond: number; signInsPerMinute: number },
): Promise<RateLimits> {
  await app.register(rateLimit, { global: false, cache: 20_000 })
  const names = new WeakMap<FastifyRequest, string>()
  const counter = (max: number, timeWindow: number) => {
    if (max === 0) return async (): Promise<void> => {}
    const count = app.createRateLimit({ max, timeWindow, keyGenerator: (request) => names.get(request) ?? '' })
    return async (request: FastifyRequest, name: string): Promise<void> => {
      names.set(request, name)
      const state = await count(request)
      if (!state.isAllowed && state.isExceeded) throw rateLimited(Math.max(1, state.ttlInSeconds))
    }
  }
  const byAddress = counter(perSecond, 1_000)
  const byKey = counter(perSecond, 1_000)
  const bySignIn = counter(signInsPerMinute, 60_000)
  return {
    countAddress: (request) => byAddress(request, request.ip),
    countKey: (request, keyId) => byKey(request, keyId),
    countSignIn: async (request, email) => {
      await bySignIn(request, `address ${request.ip}`)
      await bySignIn(request, `account ${email.toLowerCase()}`)
    },
  }
}
