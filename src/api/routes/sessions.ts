import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { recordAudit } from '../../audit/record.ts'
import type { Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { endOtherSessions, endSession, listSessions } from '../../identity/sessions.ts'
import { spendSignInLink } from '../../identity/sign-in-links.ts'
import { checkPassword, getUser, mayChangePassword, setPassword } from '../../identity/users.ts'
import { passwordField, sessionSchema } from '../../kernel/access.ts'
import { forbidden, invalidRequest, notFound, unauthenticated } from '../../kernel/errors.ts'
import { emailField } from '../../kernel/fields.ts'
import type { Principal } from '../../kernel/principal.ts'
import { actorOf, callerOf, principalOf, requireOwnOrigin } from '../auth.ts'
import { countPasswordTry } from '../password-tries.ts'
import type { RateLimits } from '../rate-limits.ts'
import type { App } from '../server.ts'
import type { SessionCookie } from '../session-cookie.ts'
import { answers, emptyBody, nothing, pathId, requireId } from '../shapes.ts'
import { signIn } from '../sign-in.ts'
import { describeMe, meAnswers } from './me.ts'

const tags = ['Sign-in']

export interface SessionRouteOptions {
  pool: Pool
  limits: RateLimits
  cookie: SessionCookie
  allowedOrigins: ReadonlySet<string>
}

export function addSessionRoutes(app: App, options: SessionRouteOptions): void {
  const { pool, limits, cookie, allowedOrigins } = options

  app.post(
    '/api/auth/sign-in',
    {
      config: { access: 'public' },
      schema: {
        tags,
        summary: 'Sign in with a password; sets the session cookie',
        body: z.strictObject({ email: emailField, password: z.string().min(1).max(200) }),
        response: meAnswers,
      },
    },
    async (request, reply) => {
      requireOwnOrigin(request, allowedOrigins)
      const { email, password } = request.body
      await countPasswordTry({ db: pool, limits }, request, email)
      const user = await checkPassword(pool, email, password)
      if (!user) {
        await recordAudit(pool, refusal('user.sign_in_refused', request, { email }))
        throw unauthenticated('Email or password is wrong.')
      }
      const principal = await signIn(pool, request, reply, { userId: user.id, cookie, how: 'password' })
      return describeMe(pool, principal)
    },
  )

  app.get(
    '/sign-in/:token',
    {
      // Link previews send a HEAD; it must not spend the token.
      exposeHeadRoute: false,
      config: { access: 'public' },
      schema: { hide: true, params: z.strictObject({ token: z.string() }) },
    },
    async (request, reply) => {
      // A browser that only prefetches must not use the link up.
      if (/prefetch|prerender/i.test(String(request.headers['sec-purpose'] ?? request.headers.purpose ?? ''))) {
        throw invalidRequest('Open this link; it is not fetched ahead of time.')
      }
      const userId = await spendSignInLink(pool, request.params.token)
      if (userId === null) {
        if (request.headers.accept?.includes('text/html')) return reply.redirect('/?sign_in=expired', 303)
        throw unauthenticated('This sign-in link was used or has expired. Start Muster again, or run: muster keys link')
      }
      await signIn(pool, request, reply, { userId, cookie, how: 'link' })
      return reply.redirect('/', 303)
    },
  )

  app.post(
    '/api/auth/sign-out',
    {
      config: { access: 'public' },
      schema: { tags, summary: 'End this session', body: emptyBody, response: answers(204, nothing) },
    },
    async (request, reply) => {
      if (request.principal?.type === 'user') {
        const { id, sessionId } = request.principal
        await endSession(pool, id, sessionId)
        await recordAudit(pool, {
          action: 'user.sign_out',
          actor: actorOf(request),
          projectId: null,
          targetType: 'user',
          targetId: id,
        })
      }
      cookie.clear(reply)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/api/auth/password',
    {
      config: { access: 'person' },
      schema: {
        tags,
        summary: 'Set a new password; all other sessions end',
        body: z.strictObject({ current_password: z.string().max(200).optional(), new_password: passwordField }),
        response: answers(204, nothing),
      },
    },
    async (request, reply) => {
      const { id, sessionId } = personOf(request)
      const user = await getUser(pool, id)
      if (!user) throw unauthenticated()
      await countPasswordTry({ db: pool, limits }, request, user.email)
      if (!(await mayChangePassword(pool, id, request.body.current_password))) {
        await recordAudit(pool, { ...refusal('user.password_refused', request, {}), targetId: id })
        throw forbidden('current_password is not the password of this account.')
      }
      await inTransaction(pool, async (tx) => {
        await setPassword(tx, id, request.body.new_password, actorOf(request))
        await endOtherSessions(tx, id, sessionId)
      })
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/api/auth/sessions',
    {
      config: { access: 'person' },
      schema: {
        tags,
        summary: 'The browsers in which this person is signed in',
        response: answers(200, z.strictObject({ items: z.array(sessionSchema), next_cursor: z.null() })),
      },
    },
    async (request) => {
      const { id, sessionId } = personOf(request)
      const items = (await listSessions(pool, id)).map((row) => ({
        ...row,
        current: row.id === sessionId,
        created_at: row.created_at.toISOString(),
        last_seen_at: row.last_seen_at.toISOString(),
        expires_at: row.expires_at.toISOString(),
      }))
      return { items, next_cursor: null }
    },
  )

  app.delete(
    '/api/auth/sessions/:sessionId',
    {
      config: { access: 'person' },
      schema: {
        tags,
        summary: 'End one of my sessions',
        params: z.strictObject({ sessionId: pathId }),
        response: answers(204, nothing),
      },
    },
    async (request, reply) => {
      const ended = await endSession(pool, personOf(request).id, requireId(request.params.sessionId, 'session'))
      if (!ended) throw notFound('session')
      return reply.code(204).send(null)
    },
  )
}

function personOf(request: FastifyRequest): Extract<Principal, { type: 'user' }> {
  const principal = principalOf(request)
  if (principal.type !== 'user') throw forbidden('This is for people who are signed in, not for keys.')
  return principal
}

const refusal = (action: string, request: FastifyRequest, details: Record<string, unknown>) => ({
  action,
  actor: callerOf(request),
  projectId: null,
  targetType: 'user',
  targetId: null as string | null,
  details,
})
