import '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { SESSION_DAYS } from '../identity/sessions.ts'

const NAME = 'muster_session'
// The prefix makes browsers refuse the cookie from any other host or path; it is allowed over https only.
const SECURE_NAME = `__Host-${NAME}`

export function readSessionCookie(request: FastifyRequest): string | null {
  return request.cookies[SECURE_NAME] ?? request.cookies[NAME] ?? null
}

export function setSessionCookie(reply: FastifyReply, token: string, secure: boolean): void {
  reply.setCookie(secure ? SECURE_NAME : NAME, token, {
    path: '/',
    httpOnly: true,
    sameSite: 'lax',
    secure,
    maxAge: SESSION_DAYS * 86_400,
  })
}

export function clearSessionCookie(reply: FastifyReply, secure: boolean): void {
  reply.clearCookie(secure ? SECURE_NAME : NAME, { path: '/', httpOnly: true, sameSite: 'lax', secure })
}
