import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { recordAudit } from '../../audit/record.ts'
import type { Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { endOtherSessions, endSession, listSessions } from '../../identity/sessions.ts'
import { spendSignInLink } from '../../identity/sign-in-links.ts'
import { checkPassword, getUser, mayChangePassword, setPassword } from '../../identity/users.ts'
import { passwordChange, sessionListSchema, signInInput } from '../../kernel/access.ts'
import { forbidden, invalidRequest, notFound, unauthenticated } from '../../kernel/errors.ts'
import type { Principal } from '../../kernel/principal.ts'
import type { App } from '../http/app.ts'
import { actorOf, callerOf, principalOf, requireOwnOrigin } from '../http/auth.ts'
import { countPasswordTry } from '../http/password-tries.ts'
import type { RateLimits } from '../http/rate-limits.ts'
import { routesOf } from '../http/routes-of.ts'
import type { SessionCookie } from '../http/session-cookie.ts'
import { answers, emptyBody, nothing, pathId, requireId } from '../http/shapes.ts'
import { signIn } from '../http/sign-in.ts'
import { describeMe, meAnswers } from './me.ts'

const openTo = routesOf('Sign-in')

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
    openTo('public', 'Sign in with a password; sets the session cookie', {
      body: signInInput,
      response: meAnswers,
    }),
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
      // Link previews send a HEAD, which must not spend the token.
      exposeHeadRoute: false,
      config: { access: 'public' },
      schema: { hide: true, params: z.strictObject({ token: z.string() }) },
    },
    async (request, reply) => {
      // A browser that only prefetches must not spend the link.
      if (/prefetch|prerender/i.test(String(request.headers['sec-purpose'] ?? request.headers.purpose ?? ''))) {
        throw invalidRequest('Open this link in the browser; a prefetch does not sign in.')
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
    openTo('public', 'End this session', { body: emptyBody, response: answers(204, nothing) }),
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

  addOwnSessionRoutes(app, options)
}

function addOwnSessionRoutes(app: App, { pool, limits }: SessionRouteOptions): void {
  app.post(
    '/api/auth/password',
    openTo('person', 'Set a new password; all other sessions end', {
      body: passwordChange,
      response: answers(204, nothing),
    }),
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
    openTo('person', 'List the sessions of the signed-in person', {
      response: answers(200, sessionListSchema),
    }),
    async (request) => {
      const { id, sessionId } = personOf(request)
      const sessions = await listSessions(pool, id)
      return { items: sessions.map((row) => ({ ...row, current: row.id === sessionId })), next_cursor: null }
    },
  )

  app.delete(
    '/api/auth/sessions/:sessionId',
    openTo('person', 'End one session of the signed-in person', {
      params: z.strictObject({ sessionId: pathId }),
      response: answers(204, nothing),
    }),
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
