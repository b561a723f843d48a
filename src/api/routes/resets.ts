import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { createReset, getReset, useReset } from '../../identity/resets.ts'
import { passwordField, resetLinkSchema, resetSchema } from '../../kernel/access.ts'
import { actorOf, requireOwnOrigin } from '../auth.ts'
import type { Create } from '../idempotency.ts'
import type { RateLimits } from '../rate-limits.ts'
import type { App } from '../server.ts'
import type { SessionCookie } from '../session-cookie.ts'
import { answers, emptyBody, pathId, requireId } from '../shapes.ts'
import { signIn } from '../sign-in.ts'
import { describeMe, meAnswers } from './me.ts'

const tags = ['Sign-in']
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
    {
      config: { access: 'instance' },
      schema: {
        tags,
        summary: 'Answer a one-time link by which the person of this account chooses a new password',
        params: z.strictObject({ id: pathId }),
        body: emptyBody,
        response: answers(201, resetLinkSchema),
      },
    },
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
    {
      config: { access: 'public' },
      schema: {
        tags,
        summary: 'The account that a reset link is for',
        params: tokenParams,
        response: answers(200, resetSchema),
      },
    },
    async (request) => {
      const { email, expiresAt } = await getReset(pool, request.params.token)
      return { email, expires_at: expiresAt.toISOString() }
    },
  )

  app.post(
    '/api/resets/:token/accept',
    {
      config: { access: 'public' },
      schema: {
        tags,
        summary: 'Choose the new password and sign in; every other session of the account ends',
        params: tokenParams,
        body: z.strictObject({ password: passwordField }),
        response: meAnswers,
      },
    },
    async (request, reply) => {
      requireOwnOrigin(request, allowedOrigins)
      limits.countTry(request.ip)
      const from = { requestId: request.id, address: request.ip }
      const userId = await useReset(pool, request.params.token, request.body.password, from)
      return describeMe(pool, await signIn(pool, request, reply, { userId, cookie, how: 'reset' }))
    },
  )
}
