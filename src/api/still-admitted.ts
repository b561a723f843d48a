import type { FastifyRequest } from 'fastify'
import type { Db } from '../db/pool.ts'
import type { KeyCache } from '../identity/key-cache.ts'
import { projectExists } from '../identity/projects.ts'
import { findSession } from '../identity/sessions.ts'
import { roleIn } from '../identity/users.ts'
import { principalOf } from './auth.ts'
import type { SessionCookie } from './session-cookie.ts'

/** Tells whether the credentials of a request whose answer goes on for hours would still open the project. */
export type StillAdmitted = (request: FastifyRequest, projectId: string) => Promise<boolean>

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
        return (await keys.find(request.headers.authorization?.replace(/^Bearer +/i, '') ?? '')) !== null
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
