// The service `ui` serves the pages alone, and forwards their requests to the agent-service, so that they stay on one
// origin. The service has no database, no secrets and no state.
import type { Fetch } from '../egress/egress.ts'
import { forbidden, unauthenticated, unavailable } from '../kernel/errors.ts'
import { createSecretCheck } from '../secrets/hash.ts'
import type { App } from './http/app.ts'
import { type BaseOptions, createBaseServer } from './http/base-server.ts'
import { BODY_LIMIT } from './http/body.ts'
import { addForwarding } from './http/forward.ts'
import { addConsoleRoutes } from './routes/console.ts'
import { addSystemRoutes, type Readiness, readinessSchema } from './routes/system.ts'

export interface UiServerOptions extends BaseOptions {
  agentUrl: URL
  fetch: Fetch
  version: string
  /** The token that opens /metrics. Without a token /metrics is closed. */
  adminToken: string | null
  closeWithinMs?: number
}

/** Paths of the pages' requests, of sign-in links and of the API's description. */
const PREFIXES = ['/api/', '/v1/', '/hooks/', '/sign-in/', '/docs/']
const PATHS = ['/docs', '/openapi.json']
const READY_WITHIN_MS = 3_000

export function createUiServer(options: UiServerOptions): App {
  const app = createBaseServer(options)
  app.removeAllContentTypeParsers()
  // The agent-service reads the bodies. This service only enforces the same limit on their size.
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: BODY_LIMIT }, async (_: unknown, body: Buffer) => body)
  guardMetrics(app, options.adminToken)
  addSystemRoutes(app, { ...options, readiness: () => readinessOfAgent(options) })
  addConsoleRoutes(app)
  addForwarding(app, { ...options, prefixes: PREFIXES, paths: PATHS })
  return app
}

function guardMetrics(app: App, adminToken: string | null): void {
  const isAdminToken = adminToken === null ? null : createSecretCheck(adminToken)
  app.addHook('onRequest', async (request) => {
    if (request.routeOptions.config.access !== 'instance') return
    const bearer = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    if (bearer === undefined) throw unauthenticated()
    if (!isAdminToken?.(bearer))
      throw forbidden('Only the instance admin may do this; set MUSTER_ADMIN_TOKEN here too.')
  })
}

/** The pages are of use only while the agent-service is ready, so its readiness is theirs. */
async function readinessOfAgent({ agentUrl, fetch }: UiServerOptions): Promise<Readiness> {
  const url = new URL(`${agentUrl.pathname.replace(/\/+$/, '')}/readyz`, agentUrl)
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(READY_WITHIN_MS) })
    if (answer.ok) return readinessSchema.parse(await answer.json()).checks
    await answer.body?.cancel()
  } catch (error) {
    throw unavailable('Not ready: the agent-service does not answer.', error)
  }
  throw unavailable('Not ready: the agent-service is not ready.')
}
