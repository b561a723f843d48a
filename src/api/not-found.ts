import type { FastifyInstance } from 'fastify'
import findMyWay, { type HTTPMethod } from 'find-my-way'
import { MusterError } from '../kernel/errors.ts'
import { sendError } from './errors.ts'

export const nothingHere = (): MusterError => new MusterError('NOT_FOUND', 'There is nothing at this address.')

/** These paths hold only files: a name that cannot be decoded names no file. */
export const isFilePath = (path: string | undefined): boolean => /^\/(docs|assets)\//.test(path ?? '')

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Fastify answers a wrong method like an unknown address; Muster answers 405 and names the allowed methods. */
export function answerUnknownRoutes(app: FastifyInstance): void {
  const known = findMyWay({ maxParamLength: 512 })
  app.addHook('onRoute', (route) => {
    for (const method of [route.method].flat()) {
      if (!known.hasRoute(method as HTTPMethod, route.url)) known.on(method as HTTPMethod, route.url, () => {})
    }
  })
  app.setNotFoundHandler((request, reply) => {
    const path = request.raw.url ?? '/'
    const allowed = METHODS.filter((method) => known.find(method, path) !== null)
    const isThere = allowed.some((method) => method === request.method)
    if (allowed.length === 0 || isThere) return sendError(reply, nothingHere())
    reply.header('allow', allowed.join(', '))
    const message = `This address answers ${allowed.join(' and ')}, not ${request.method}.`
    return sendError(reply, new MusterError('METHOD_NOT_ALLOWED', message, { details: { allowed } }))
  })
}
