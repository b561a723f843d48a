// A route of the API takes nothing that it does not declare. A DELETE that passed over `?expected_version=1` would
// delete the object its sender meant to protect. Callers of pages, probes and hooks add parameters of their own, so
// those are left out.
import type { FastifyInstance } from 'fastify'
import { emptyBody, emptyQuery } from './shapes.ts'

/** Must be called before the routes are added. A declared body or query stays as it is: those objects are strict. */
export function refuseUndeclared(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (!/^\/(api|v1)\//.test(route.url)) return
    const takesBody = [route.method].flat().some((method) => method !== 'GET' && method !== 'HEAD')
    route.schema = { querystring: emptyQuery, ...(takesBody ? { body: emptyBody } : {}), ...route.schema }
  })
}
