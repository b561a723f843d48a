import { once } from 'node:events'
import type { FastifyInstance } from 'fastify'
import { noTracing, type Tracer } from '../../observe/tracing.ts'

/** One span per request, until the end of its answer, named by route pattern. Without tracing no hook is added. */
export function traceRequests(app: FastifyInstance, tracer: Tracer): void {
  if (tracer === noTracing) return
  app.addHook('onRequest', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown'
    const attributes = { 'http.request.method': request.method, 'http.route': route, 'muster.request_id': request.id }
    const traceparent = request.headers.traceparent
    void tracer.span(
      `${request.method} ${route}`,
      attributes,
      async (span) => {
        const ended = once(reply.raw, 'close')
        done()
        await ended
        span.set({ 'http.response.status_code': reply.statusCode })
      },
      { kind: 'server', parent: typeof traceparent === 'string' ? traceparent : null },
    )
  })
}
