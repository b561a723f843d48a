import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { createReset, getReset, useReset } from '../../identity/resets.ts'
import { newPassword, resetLinkSchema, resetSchema } from '../../kernel/access.ts'
import type { App } from '../http/app.ts'
import { actorOf, requireOwnOrigin } from '../http/auth.ts'
import type { Create } from '../http/idempotency.ts'
import type { RateLimits } from '../http/rate-limits.ts'
import { routesOf } from '../http/routes-of.ts'
import type { SessionCookie } from '../http/session-cookie.ts'
import { answers, emptyBody, pathId, requireId } from '../http/shapes.ts'
import { signIn } from '../http/sign-in.ts'
import { describeMe, meAnswers } from './me.ts'

const openTo = routesOf('Sign-in')
const tokenParams = z.strictObject({ token: z.string() })

export interface ResetRouteOptions {
  pool: Pool
  create: Create
  publicUrl: URL
  limits: RateLimits
  cookie: SessionCookie
  allowedOrigins: ReadonlySet<string>
}

export function addResetRoutes(app: App, options: ResetRouteOptions): void {
  const { pool, create, publicUrl, limits, cookie, allowedOrigins } = options

  app.post(
    '/api/users/:id/reset',
    openTo('instance', 'Create a one-time link with which the owner of this account chooses a new password', {
      params: z.strictObject({ id: pathId }),
      body: emptyBody,
      response: answers(201, resetLinkSchema),
    }),
    (request, reply) =>
      create(request, reply, async (db) => {
        const reset = await createReset(db, requireId(request.params.id, 'user'), actorOf(request))
        return {
          user_id: reset.userId,
          email: reset.email,
          reset_url: new URL(`/resets/${reset.token}`, publicUrl).href,
          expires_at: reset.expiresAt.toISOString(),
        }
      }),
  )

  app.get(
    '/api/resets/:token',
    openTo('public', 'Read the account that a reset link is for', {
      params: tokenParams,
      response: answers(200, resetSchema),
    }),
    async (request) => {
      const { email, expiresAt } = await getReset(pool, request.params.token)
      return { email, expires_at: expiresAt.toISOString() }
    },
  )

  app.post(
    '/api/resets/:token/accept',
    openTo('public', 'Choose the new password and sign in; every other session of the account ends', {
      params: tokenParams,
      body: newPassword,
      response: meAnswers,
    }),
    async (request, reply) => {
      requireOwnOrigin(request, allowedOrigins)
      limits.countTry(request.ip)
      const from = { requestId: request.id, address: request.ip }
      const userId = await useReset(pool, request.params.token, request.body.password, from)
      return describeMe(pool, await signIn(pool, request, reply, { userId, cookie, how: 'reset' }))
    },
  )
}
