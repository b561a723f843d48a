// The HTTP edge of every service: Fastify with our limits, one form of failure, request ids, security headers, and one
// span, one log line and one measurement per request.
import Fastify from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { newId } from '../../kernel/id.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../observe/metrics.ts'
import type { Tracer } from '../../observe/tracing.ts'
import type { App } from './app.ts'
import { BODY_LIMIT } from './body.ts'
import { createErrorHandler } from './errors.ts'
import { answerUnknownRoutes, isFilePath, nothingHere } from './not-found.ts'
import { watchRequests } from './observe-requests.ts'
import { createRawAnswers } from './raw-http.ts'
import { addSecurityHeaders, securityHeaders } from './security-headers.ts'
import { createSerializer } from './serializer.ts'
import { traceRequests } from './trace-requests.ts'
import { validatorCompiler } from './validate.ts'

export interface BaseOptions {
  log: Log
  metrics: Metrics
  tracer: Tracer
  publicUrl: URL
  /** Addresses whose X-Forwarded-For counts; an empty list trusts no address. */
  trustProxy: readonly string[]
  /** True in tests: every answer is checked against its schema. Production trusts the types. */
  checkAnswers?: boolean
  /** The time in which a request must arrive, headers and body. */
  requestTimeoutMs?: number
  /** Called for every route, as "METHOD /path". */
  onRoute?: (route: string) => void
}

/** The server sets its own compilers. Without this Fastify loads others at each start: 60 ms (measured). */
function notBuilt(): never {
  throw new Error('The server has no other compilers than its own.')
}

export function createBaseServer(options: BaseOptions): App {
  const { log, requestTimeoutMs = 30_000 } = options
  const raw = createRawAnswers()
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_LIMIT,
    requestTimeout: requestTimeoutMs,
    http: {
      headersTimeout: Math.min(15_000, requestTimeoutMs),
      maxHeaderSize: 16_384,
      requireHostHeader: false,
      connectionsCheckingInterval: Math.min(5_000, requestTimeoutMs),
    },
    keepAliveTimeout: 72_000,
    trustProxy: options.trustProxy.length > 0 ? [...options.trustProxy] : false,
    genReqId: (request) => requestId(request.headers['x-request-id']),
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: (error, request, reply) => {
      // No hook runs for an address that cannot be decoded.
      reply.headers({ ...securityHeaders(options.publicUrl), 'x-request-id': request.id })
      const shown = isFilePath(request.raw.url) ? nothingHere() : error
      createErrorHandler(log)(shown, request as never, reply as never) // the same objects, typed for a plain server
    },
    clientErrorHandler: raw.onMalformed,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    schemaController: { compilersFactory: { buildValidator: notBuilt, buildSerializer: notBuilt } },
  }).withTypeProvider<ZodTypeProvider>()

  raw.watch(app.server)
  app.addHook('preClose', async () => raw.endSilent())
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(createSerializer(options.checkAnswers ?? false))
  app.setErrorHandler(createErrorHandler(log))
  app.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) options.onRoute?.(`${one} ${url}`)
  })
  traceRequests(app, options.tracer)
  watchRequests(app, options)
  answerUnknownRoutes(app)
  addSecurityHeaders(app, options.publicUrl)
  return app
}

const requestId = (sent: string | string[] | undefined): string =>
  typeof sent === 'string' && /^[\w.-]{1,100}$/.test(sent) ? sent : newId()
