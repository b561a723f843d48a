import type { FastifyInstance } from 'fastify'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../observe/metrics.ts'

/** One log line and one measurement per request, by the route's pattern: addresses carry one-time tokens. */
export function watchRequests(app: FastifyInstance, { log, metrics }: { log: Log; metrics: Metrics }): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    // Pages set a header of their own. Every other answer, also an error, is for its caller alone.
    reply.header('cache-control', 'no-store')
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown'
    const durationMs = reply.elapsedTime
    metrics.observeHttp({ method: request.method, route, status: reply.statusCode, durationMs })
    if (!request.routeOptions.config.unlimited) {
      log.debug(
        { request_id: request.id, method: request.method, route, status: reply.statusCode, duration_ms: durationMs },
        'request answered',
      )
    }
    done()
  })
}
