// A route of the API takes nothing that it does not declare. An `?expected_version=1` that is passed over would delete
// what its sender meant to protect. Pages, probes and hooks are called by those who add parameters of their own.
import type { FastifyInstance } from 'fastify'
import { emptyBody, emptyQuery } from './shapes.ts'

/** Must be called before the routes are added. What a route declares stands; declared objects are strict by themselves. */
export function refuseUndeclared(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (!route.url.startsWith('/api/')) return
    const takesBody = [route.method].flat().some((method) => method !== 'GET' && method !== 'HEAD')
    route.schema = { querystring: emptyQuery, ...(takesBody ? { body: emptyBody } : {}), ...route.schema }
  })
}
