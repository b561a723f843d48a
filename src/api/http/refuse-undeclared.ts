// A route of the API accepts no parameter that it does not declare: a DELETE that ignored `?expected_version=1` would
// delete the object its sender meant to protect. Pages, probes and hooks are left out.
import type { FastifyInstance } from 'fastify'
import { emptyBody, emptyQuery } from './shapes.ts'

/** Must be called before the routes are added. Schemas of declared bodies and queries are strict by themselves. */
export function refuseUndeclared(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (!/^\/(api|v1)\//.test(route.url)) return
    const takesBody = [route.method].flat().some((method) => method !== 'GET' && method !== 'HEAD')
    route.schema = { querystring: emptyQuery, ...(takesBody ? { body: emptyBody } : {}), ...route.schema }
  })
}
