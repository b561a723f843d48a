import type { FastifyReply, FastifyRequest } from 'fastify'
import { recordAudit } from '../../audit/record.ts'
import type { Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { noteAddress } from '../../identity/known-addresses.ts'
import { createSession, endSessionOfToken } from '../../identity/sessions.ts'
import { actorOfUser } from '../../identity/users.ts'
import type { Principal } from '../../kernel/principal.ts'
import { clientOf } from './rate-limits.ts'
import type { SessionCookie } from './session-cookie.ts'

/** Starts a sign-in session under a new token and ends the browser's earlier one, so that nobody can plant one. */
export async function signIn(
  pool: Pool,
  request: FastifyRequest,
  reply: FastifyReply,
  person: { userId: string; cookie: SessionCookie; how: 'password' | 'link' | 'invitation' | 'reset' },
): Promise<Principal> {
  const from = { address: request.ip, userAgent: request.headers['user-agent'] ?? null }
  const earlier = person.cookie.read(request)
  const { sessionId, token } = await inTransaction(pool, async (tx) => {
    if (earlier) await endSessionOfToken(tx, earlier)
    await recordAudit(tx, {
      action: 'user.sign_in',
      actor: actorOfUser(person.userId, { requestId: request.id, address: request.ip }),
      projectId: null,
      targetType: 'user',
      targetId: person.userId,
      details: { how: person.how },
    })
    await noteAddress(tx, person.userId, clientOf(request.ip))
    return createSession(tx, person.userId, from)
  })
  person.cookie.set(reply, token)
  return { type: 'user', id: person.userId, sessionId, instanceAdmin: false }
}
