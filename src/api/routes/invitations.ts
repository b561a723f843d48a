import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { acceptInvitation, getInvitation } from '../../identity/invitations.ts'
import { getUser } from '../../identity/users.ts'
import { invitationAcceptance, invitationSchema } from '../../kernel/access.ts'
import type { App } from '../http/app.ts'
import { callerOf, requireOwnOrigin } from '../http/auth.ts'
import { countPasswordTry } from '../http/password-tries.ts'
import type { RateLimits } from '../http/rate-limits.ts'
import { routesOf } from '../http/routes-of.ts'
import type { SessionCookie } from '../http/session-cookie.ts'
import { answers } from '../http/shapes.ts'
import { signIn } from '../http/sign-in.ts'
import { describeMe, meAnswers } from './me.ts'

const openTo = routesOf('Members')
const params = z.strictObject({ token: z.string() })

export interface InvitationRouteOptions {
  pool: Pool
  limits: RateLimits
  cookie: SessionCookie
  allowedOrigins: ReadonlySet<string>
}

export function addInvitationRoutes(app: App, { pool, limits, cookie, allowedOrigins }: InvitationRouteOptions): void {
  app.get(
    '/api/invitations/:token',
    openTo('public', 'Read the project and the role that an invitation is for', {
      params,
      response: answers(200, invitationSchema),
    }),
    async (request) => {
      const { email, role, projectId, projectName, expiresAt } = await getInvitation(pool, request.params.token)
      return { email, role, project: { id: projectId, name: projectName }, expires_at: expiresAt.toISOString() }
    },
  )

  app.post(
    '/api/invitations/:token/accept',
    openTo('public', 'Join the project and sign in', {
      params,
      body: invitationAcceptance,
      response: meAnswers,
    }),
    async (request, reply) => {
      requireOwnOrigin(request, allowedOrigins)
      const { token } = request.params
      const invitation = await getInvitation(pool, token).catch((error: unknown) => {
        limits.countTry(request.ip) // guesses of links are limited like guesses of passwords
        throw error
      })
      await countPasswordTry({ db: pool, limits }, request, invitation.email)
      const signedInAs = request.principal?.type === 'user' ? await getUser(pool, request.principal.id) : null
      const person = { ...request.body, token, signedInAs }
      const user = await acceptInvitation(pool, invitation, person, callerOf(request))
      const principal = await signIn(pool, request, reply, { userId: user.id, cookie, how: 'invitation' })
      return describeMe(pool, principal)
    },
  )
}
