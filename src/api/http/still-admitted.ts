import type { FastifyRequest } from 'fastify'
import type { Db } from '../../db/pool.ts'
import type { KeyCache } from '../../identity/key-cache.ts'
import { projectExists, projectsSeenBy } from '../../identity/projects.ts'
import { findSession } from '../../identity/sessions.ts'
import { roleIn } from '../../identity/users.ts'
import type { Principal } from '../../kernel/principal.ts'
import { principalOf } from './auth.ts'
import type { SessionCookie } from './session-cookie.ts'

/** True if the credentials of a request whose answer goes on for hours would still open the project. */
export type StillAdmitted = (request: FastifyRequest, projectId: string) => Promise<boolean>

/** The projects that the credentials of a request open now; null if they open nothing any more. */
export type ProjectsNow = (request: FastifyRequest) => Promise<{ id: string; created_at: Date }[] | null>

export interface StillAdmittedOptions {
  db: Db
  keys: KeyCache
  cookie: SessionCookie
}

export function createStillAdmitted({ db, keys, cookie }: StillAdmittedOptions): StillAdmitted {
  return async (request, projectId) => {
    switch (principalOf(request).type) {
      case 'instance_admin':
        return projectExists(db, projectId)
      case 'key':
        // A key is deleted with its project.
        return (await findKey(keys, request)) !== null
      case 'user':
        return isStillMember(request, projectId)
    }
  }

  async function isStillMember(request: FastifyRequest, projectId: string): Promise<boolean> {
    const session = await findSession(db, cookie.read(request) ?? '')
    if (!session) return false
    return session.instanceAdmin ? projectExists(db, projectId) : (await roleIn(db, session.userId, projectId)) !== null
  }
}

export function createProjectsNow({ db, keys, cookie }: StillAdmittedOptions): ProjectsNow {
  return async (request) => {
    const principal = await principalNow(request)
    return principal && projectsSeenBy(db, principal)
  }

  async function principalNow(request: FastifyRequest): Promise<Principal | null> {
    const principal = principalOf(request)
    if (principal.type === 'instance_admin') return principal
    if (principal.type === 'key') return (await findKey(keys, request)) && principal
    const session = await findSession(db, cookie.read(request) ?? '')
    return session && { ...principal, instanceAdmin: session.instanceAdmin }
  }
}

const findKey = (keys: KeyCache, request: FastifyRequest) =>
  keys.find(request.headers.authorization?.replace(/^Bearer +/i, '') ?? '')
