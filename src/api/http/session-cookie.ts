import '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { MOST_SESSION_DAYS } from '../../identity/sessions.ts'

export interface SessionCookie {
  /** Reads the configured name only: a cookie of the other name may come from a neighbour on the same host. */
  read(request: FastifyRequest): string | null
  set(reply: FastifyReply, token: string): void
  clear(reply: FastifyReply): void
}

/** `secure` is true if the public address begins with https. */
export function createSessionCookie(secure: boolean): SessionCookie {
  // The prefix makes browsers refuse the cookie from any other host or path. It is allowed over https only.
  const name = secure ? '__Host-muster_session' : 'muster_session'
  const scope = { path: '/', httpOnly: true, sameSite: 'lax', secure } as const
  return {
    read: (request) => request.cookies[name] ?? null,
    set: (reply, token) => reply.setCookie(name, token, { ...scope, maxAge: MOST_SESSION_DAYS * 86_400 }),
    clear: (reply) => reply.clearCookie(name, scope),
  }
}
