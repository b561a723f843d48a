import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import findMyWay, { type HTTPMethod } from 'find-my-way'
import { MusterError } from '../../kernel/errors.ts'
import { sendError } from './errors.ts'

export const nothingHere = (): MusterError => new MusterError('NOT_FOUND', 'There is nothing at this address.')

/** These paths hold only files: a name that cannot be decoded names no file. */
export const isFilePath = (path: string | undefined): boolean => /^\/(docs|assets)\//.test(path ?? '')

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Fastify answers a wrong method like an unknown address; Muster answers 405 and names the allowed methods. */
export function answerUnknownRoutes(app: FastifyInstance): void {
  const known = findMyWay({ maxParamLength: 512 })
  const routes: Route[] = []
  app.addHook('onRoute', (route) => {
    for (const method of [route.method].flat()) {
      if (known.hasRoute(method as HTTPMethod, route.url)) continue
      const segments = route.url.split('/')
      known.on(method as HTTPMethod, route.url, () => {}, { segments })
      routes.push({ method, segments })
    }
  })
  refuseNamesAsIds(app, routes)
  app.setNotFoundHandler((request, reply) => {
    const path = request.raw.url ?? '/'
    const allowed = METHODS.filter((method) => {
      const found: { store: Pick<Route, 'segments'> } | null = known.find(method, path)
      return found !== null && namedAt(path, namedBeside(routes, found.store.segments)).length === 0
    })
    const isThere = allowed.some((method) => method === request.method)
    return sendError(reply, allowed.length === 0 || isThere ? nothingHere() : notAllowed(reply, request, allowed))
  })
}

interface Route {
  method: string
  segments: readonly string[]
}

/**
 * `GET /objects/by-key` would be the object with the id by-key, if only another method has this address. Such names are
 * no ids, so the method is wrong. This is asked after the credentials and before the query.
 */
function refuseNamesAsIds(app: FastifyInstance, routes: readonly Route[]): void {
  const named = new Map<string, readonly Route[]>()
  app.addHook('preParsing', async (request, reply) => {
    const { method } = request
    const { url = '' } = request.routeOptions
    if (!url.includes(':')) return
    const key = `${method} ${url}`
    const others = named.get(key) ?? namedBeside(routes, url.split('/'))
    named.set(key, others)
    if (others.length === 0) return
    const here = namedAt(request.raw.url ?? '', others)
    const allowed = METHODS.filter((each) => here.some((route) => route.method === each))
    if (allowed.length > 0) throw notAllowed(reply, request, allowed)
  })
}

const isParam = (segment: string | undefined): boolean => segment?.startsWith(':') ?? false

/** The routes that have a name at the place of a parameter of this one, and are the same elsewhere. */
const namedBeside = (routes: readonly Route[], own: readonly string[]): Route[] =>
  routes.filter(
    ({ segments }) =>
      segments.length === own.length &&
      segments.every((each, at) => each === own[at] || isParam(own[at])) &&
      segments.some((each, at) => !isParam(each) && isParam(own[at])),
  )

/** Those of the routes that have this address. */
function namedAt(address: string, routes: readonly Route[]): Route[] {
  const path = address.replace(/\?.*$/s, '').split('/')
  return routes.filter(({ segments }) => segments.every((each, at) => isParam(each) || each === path[at]))
}

function notAllowed(reply: FastifyReply, { method }: FastifyRequest, allowed: readonly string[]): MusterError {
  reply.header('allow', allowed.join(', '))
  const message = `This address answers ${allowed.join(' and ')}, not ${method}.`
  return new MusterError('METHOD_NOT_ALLOWED', message, { details: { allowed } })
}
