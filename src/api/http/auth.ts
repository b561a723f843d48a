// Identifies the caller and checks the caller's rights before a body is read. A route whose config names no access
// cannot be registered.
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Db } from '../../db/pool.ts'
import type { KeyCache } from '../../identity/key-cache.ts'
import { projectExists } from '../../identity/projects.ts'
import { findSession } from '../../identity/sessions.ts'
import { roleIn } from '../../identity/users.ts'
import { forbidden, invalidRequest, notFound, unauthenticated } from '../../kernel/errors.ts'
import { isId } from '../../kernel/id.ts'
import { type Actor, isInstanceAdmin, type Principal, systemActor } from '../../kernel/principal.ts'
import { isAtLeast, type Role } from '../../kernel/role.ts'
import type { RateLimits } from './rate-limits.ts'
import type { SessionCookie } from './session-cookie.ts'

/**
 * `authenticated`: any valid credentials · `person`: people who have signed in · `instance`: the instance admin alone.
 * A role is the least role that a caller must have in the project that `:id` names; below /v1 in the key's own project,
 * or in the one that the header x-project-id names.
 */
export type Access = 'public' | 'authenticated' | 'person' | 'instance' | Role

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /** True for routes without a rate limit, so that a probe never marks a busy server as dead. */
    unlimited?: boolean
    /** True for routes that check their callers and count their requests themselves. */
    hasOwnCredentials?: boolean
  }
  interface FastifyRequest {
    principal: Principal | null
    projectId: string | null
    /** The principal's role in that project; null on other routes. */
    projectRole: Role | null
  }
}

export interface AuthOptions {
  db: Db
  keys: KeyCache
  isAdminToken: (text: string) => boolean
  instanceId: string
  limits: RateLimits
  cookie: SessionCookie
  allowedOrigins: ReadonlySet<string>
}

export function requireAccess(app: FastifyInstance, options: AuthOptions): void {
  app.decorateRequest('principal', null)
  app.decorateRequest('projectId', null)
  app.decorateRequest('projectRole', null)
  requireEveryRouteToSay(app)
  app.addHook('onRequest', async (request: FastifyRequest) => {
    const { access = 'public', unlimited, hasOwnCredentials } = request.routeOptions.config
    if (unlimited) return
    requireHost(request)
    lowerIds(request)
    if (hasOwnCredentials && !request.is404) return
    request.principal = await identify(request, options)
    if (!request.is404 && access !== 'public') await admit(request, access, options.db)
  })
}

/** Access is checked once all routes are registered: an inner scope may still set it for the routes of a plugin. */
function requireEveryRouteToSay(app: FastifyInstance): void {
  const routes: RouteOptions[] = []
  app.addHook('onRoute', (route) => {
    routes.push(route)
  })
  app.addHook('onReady', async () => {
    const silent = routes.filter((route) => route.config?.access === undefined)
    if (silent.length > 0) throw new Error(`These routes do not say who may use them: ${silent.map(nameOf).join(', ')}`)
  })
}

const nameOf = (route: RouteOptions): string => `${route.method} ${route.url}`

/** Node's own answer to a missing Host header has no error envelope, so Node's check is off and made here. */
function requireHost(request: FastifyRequest): void {
  if (request.raw.httpVersion === '1.1' && request.headers.host === undefined) {
    throw invalidRequest('An HTTP/1.1 request needs a Host header.')
  }
}

/** Seals, audit entries and caches know an id by its text, so ids become lower case. Names keep their case. */
function lowerIds(request: FastifyRequest): void {
  const params = request.params as Record<string, string> // Fastify types params as unknown
  for (const [name, text] of Object.entries(params)) {
    if (name === 'id' || name.endsWith('Id')) params[name] = text.toLowerCase()
  }
}

/** The actor of this request, for the audit log. */
export function actorOf(request: FastifyRequest): Actor {
  const { type, id } = principalOf(request)
  return { type, id, requestId: request.id, address: request.ip }
}

/** The actor of a request to a public route: a caller without credentials is the system. */
export function callerOf(request: FastifyRequest): Actor {
  return request.principal ? actorOf(request) : { ...systemActor, requestId: request.id, address: request.ip }
}

/** The project of a request below /v1 that needs a role in one. */
export function projectOf(request: FastifyRequest): string {
  if (request.projectId === null) throw new Error('a route without a role in a project asked for one')
  return request.projectId
}

export function principalOf(request: FastifyRequest): Principal {
  if (!request.principal) throw unauthenticated()
  return request.principal
}

async function identify(request: FastifyRequest, options: AuthOptions): Promise<Principal | null> {
  const header = request.headers.authorization
  const bearer = header === undefined ? null : (/^Bearer +(\S+)$/i.exec(header)?.[1] ?? '')
  // The admin token is compared in memory and never limited. Other credentials count before the database is asked.
  if (bearer && options.isAdminToken(bearer)) return { type: 'instance_admin', id: options.instanceId }
  if (bearer !== null) return identifyKey(request.ip, bearer, options)
  options.limits.countAddress(request.ip)
  const token = options.cookie.read(request)
  return token === null ? null : identifyPerson(request, token, options)
}

/** A known key counts for itself, so that a neighbour at the same address cannot use up its share. */
async function identifyKey(address: string, bearer: string, options: AuthOptions): Promise<Principal | null> {
  const key = await options.keys.find(bearer, () => options.limits.countLookup(address))
  if (!key) {
    options.limits.countAddress(address)
    return null
  }
  options.limits.countKey(key.id)
  return { type: 'key', ...key }
}

async function identifyPerson(request: FastifyRequest, token: string, options: AuthOptions): Promise<Principal | null> {
  const session = await findSession(options.db, token)
  if (!session) return null
  if (!isRead(request.method)) requireSameOrigin(request, options.allowedOrigins)
  return { type: 'user', id: session.userId, sessionId: session.sessionId, instanceAdmin: session.instanceAdmin }
}

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD' || method === 'OPTIONS'

/** For routes that need no cookie: a script without an Origin is let in, and another site's page is not. */
export function requireOwnOrigin(request: FastifyRequest, allowed: ReadonlySet<string>): void {
  if (request.headers.origin !== undefined) requireSameOrigin(request, allowed)
}

/** Browsers send the cookie also with requests that other sites make; only Muster's own pages send Muster's origin. */
function requireSameOrigin(request: FastifyRequest, allowed: ReadonlySet<string>): void {
  if (!allowed.has(request.headers.origin ?? '')) {
    throw forbidden('A signed-in browser may write only from the console itself (the Origin header must match).')
  }
}

async function admit(request: FastifyRequest, access: Exclude<Access, 'public'>, db: Db): Promise<void> {
  const principal = principalOf(request)
  if (access === 'authenticated') return
  if (access === 'person') {
    if (principal.type !== 'user') throw forbidden('This is for people who are signed in, not for keys.')
    return
  }
  if (access === 'instance') {
    if (!isInstanceAdmin(principal)) throw forbidden('Only the instance admin may do this.')
    return
  }
  const projectId = projectIdOf(request, principal)
  const role = await roleInProject(projectId, principal, db)
  request.projectId = projectId
  request.projectRole = role
  if (!isAtLeast(role, access))
    throw forbidden(`This needs the role ${access} in the project; these credentials have ${role}.`)
}

/** A key that names another project than its own is refused like any stranger. */
function projectIdOf(request: FastifyRequest, principal: Principal): string {
  const { id = '' } = request.params as { id?: string } // every project route has :id; Fastify types params as unknown
  if (!request.routeOptions.url?.startsWith('/v1/')) return id
  const named = request.headers['x-project-id']
  if (named === undefined) {
    if (principal.type === 'key') return principal.projectId
    throw invalidRequest('Name the project with the header x-project-id.')
  }
  const text = String(named).toLowerCase()
  if (!isId(text)) throw invalidRequest('The header x-project-id must be the id of a project.')
  return text
}

/** An unknown project, a malformed id and somebody else's project are all answered 404. */
async function roleInProject(id: string, principal: Principal, db: Db): Promise<Role> {
  if (!isId(id)) throw notFound('project')
  if (isInstanceAdmin(principal)) {
    if (!(await projectExists(db, id))) throw notFound('project')
    return 'admin'
  }
  const role = principal.type === 'key' ? roleOfKey(principal, id) : await roleIn(db, principal.id ?? '', id)
  if (role === null) throw notFound('project')
  return role
}

const roleOfKey = (key: Extract<Principal, { type: 'key' }>, projectId: string): Role | null =>
  key.projectId === projectId ? key.role : null
