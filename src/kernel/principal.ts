import type { Role } from './role.ts'

/** The caller of a request according to its credentials; never taken from a body. */
export type Principal =
  /** The holder of the admin token, who acts as the instance itself. */
  | { type: 'instance_admin'; id: string }
  | { type: 'key'; id: string; projectId: string; role: Role }
  | { type: 'user'; id: string; sessionId: string; instanceAdmin: boolean }

export const isInstanceAdmin = (principal: Principal): boolean =>
  principal.type === 'instance_admin' || (principal.type === 'user' && principal.instanceAdmin)

export interface Actor {
  type: 'instance_admin' | 'key' | 'user' | 'agent' | 'hook' | 'system'
  id: string | null
  requestId: string | null
  address: string | null
}

export const systemActor: Actor = { type: 'system', id: null, requestId: null, address: null }

export const agentActor = (id: string): Actor => ({ type: 'agent', id, requestId: null, address: null })
