// The HTTP edge: Fastify, with zod schemas as the one source of types, validation and the OpenAPI document.

import type { IncomingMessage, ServerResponse } from 'node:http'
import cookies from '@fastify/cookie'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type RawServerDefault } from 'fastify'
import { validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import type { Pool } from '../db/pool.ts'
import { createEndedRuns } from '../flows/ended-runs.ts'
import { createKeyCache, type KeyCache } from '../identity/key-cache.ts'
import { newId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Tracer } from '../observe/tracing.ts'
import type { Cipher } from '../secrets/cipher.ts'
import { createSecretCheck } from '../secrets/hash.ts'
import { requireAccess } from './auth.ts'
import { acceptJsonOnly, BODY_LIMIT } from './body.ts'
import { createErrorHandler } from './errors.ts'
import { createIdempotency, type Idempotency } from './idempotency.ts'
import { trackLongRequests } from './long-requests.ts'
import { answerUnknownRoutes, isFilePath, nothingHere } from './not-found.ts'
import { watchRequests } from './observe-requests.ts'
import { createOpenStreams, type OpenStreams } from './open-streams.ts'
import { serveOpenApi } from './openapi.ts'
import { createProjectPlaces, type ProjectPlaces, placesOf, requirePlaces } from './project-places.ts'
import { createRateLimits, type RateLimits } from './rate-limits.ts'
import { createRawAnswers } from './raw-http.ts'
import { refuseUndeclared } from './refuse-undeclared.ts'
import { addAgentRoutes } from './routes/agents.ts'
import { addAlertRoutes } from './routes/alerts.ts'
import { addAuditRoutes } from './routes/audit.ts'
import { addFlowEventRoutes } from './routes/flow-events.ts'
import { addFlowRunRoutes } from './routes/flow-runs.ts'
import { addFlowTemplateRoutes } from './routes/flow-templates.ts'
import { addFlowTopologyRoutes } from './routes/flow-topology.ts'
import { addFlowTraceRoutes } from './routes/flow-traces.ts'
import { addFlowRoutes } from './routes/flows.ts'
import { addHookDeliveryRoutes } from './routes/hook-deliveries.ts'
import { addHookRoutes } from './routes/hooks.ts'
import { addInvitationRoutes } from './routes/invitations.ts'
import { addKeyRoutes } from './routes/keys.ts'
import { addMcpServerRoutes } from './routes/mcp-servers.ts'
import { addMeRoutes } from './routes/me.ts'
import { addMemberRoutes } from './routes/members.ts'
import { addObjectRoutes } from './routes/objects.ts'
import { addOrgRoutes } from './routes/org.ts'
import { addPageRoutes } from './routes/pages.ts'
import { addProcessingLogRoutes } from './routes/processing-log.ts'
import { addProjectRoutes } from './routes/projects.ts'
import { addProviderRoutes } from './routes/providers.ts'
import { addRelationshipRoutes } from './routes/relationships.ts'
import { addResetRoutes } from './routes/resets.ts'
import { addRunEventRoutes } from './routes/run-events.ts'
import { addRunRoutes } from './routes/runs.ts'
import { addScheduleRoutes } from './routes/schedule.ts'
import { addSessionRoutes } from './routes/sessions.ts'
import { addSettingsRoutes } from './routes/settings.ts'
import { addSystemRoutes, type Readiness } from './routes/system.ts'
import { addTaskRoutes } from './routes/tasks.ts'
import { addToolRoutes } from './routes/tools.ts'
import type { RunServices } from './run-services.ts'
import { addSecurityHeaders } from './security-headers.ts'
import { createSerializer } from './serializer.ts'
import { createSessionCookie, type SessionCookie } from './session-cookie.ts'
import { createStillAdmitted } from './still-admitted.ts'
import { traceRequests } from './trace-requests.ts'

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse<IncomingMessage>,
  FastifyBaseLogger,
  ZodTypeProvider
>

export interface ServerOptions {
  pool: Pool
  cipher: Cipher
  log: Log
  metrics: Metrics
  tracer: Tracer
  adminToken: string
  /** The id under which a caller with the admin token acts. */
  instanceId: string
  publicUrl: URL
  /** Addresses whose X-Forwarded-For counts; empty trusts nobody. */
  trustProxy: readonly string[]
  rateLimit: number
  readiness: () => Promise<Readiness>
  version: string
  /** A worker serves health and metrics only. */
  role: 'all' | 'api' | 'worker'
  runs: RunServices
  /** Tests hold every answer against its schema; production trusts the types. */
  checkAnswers?: boolean
  /** Sign-ins per minute, by address and by account; 0 means no limit. */
  signInLimit?: number
  /** Streams that one key or person may have open; the instance admin may have any number. */
  streamsPerKey?: number
  /** The time a request may take to arrive, headers and body. */
  requestTimeoutMs?: number
  /** Called for every route, as "METHOD /path". */
  onRoute?: (route: string) => void
}

export async function createServer(options: ServerOptions): Promise<App> {
  const { pool, cipher, log, runs: services, requestTimeoutMs = 30_000 } = options
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
      reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff')
      const shown = isFilePath(request.raw.url) ? nothingHere() : error
      createErrorHandler(log)(shown, request as never, reply as never) // the same objects, typed for a bare server
    },
    clientErrorHandler: raw.onMalformed,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
  }).withTypeProvider<ZodTypeProvider>()

  raw.watch(app.server)
  app.addHook('preClose', async () => raw.endSilent())
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(createSerializer(options.checkAnswers ?? false))
  app.setErrorHandler(createErrorHandler(log))
  acceptJsonOnly(app)
  refuseUndeclared(app)
  app.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) options.onRoute?.(`${one} ${url}`)
  })
  traceRequests(app, options.tracer)
  watchRequests(app, options)
  answerUnknownRoutes(app)
  addSecurityHeaders(app, options.publicUrl)
  await app.register(cookies)
  const limits = createRateLimits({
    perSecond: options.rateLimit,
    signInsPerMinute: options.signInLimit ?? 10,
  })
  const keys = createKeyCache(pool)
  services.hearDeleted?.(keys.forgetProjects)
  const origins = allowedOrigins(options.publicUrl)
  const isAdminToken = createSecretCheck(options.adminToken)
  const cookie = createSessionCookie(options.publicUrl.protocol === 'https:')
  requireAccess(app, {
    db: pool,
    keys,
    isAdminToken,
    instanceId: options.instanceId,
    limits,
    cookie,
    allowedOrigins: origins,
  })

  const places = createProjectPlaces(placesOf(pool.options.max))
  requirePlaces(app, places)

  if (options.role !== 'worker') await serveOpenApi(app, options.version)
  addSystemRoutes(app, options)
  if (options.role === 'worker') return app
  const idempotency = createIdempotency({ pool, cipher })
  const { create } = idempotency
  addProviderRoutes(app, { pool, cipher, create, onProvider: options.runs.onProvider })
  const onHalt: RunServices['onHalt'] = async (projectId, isHalted) => {
    await services.onHalt(projectId, isHalted)
    services.org.poke(projectId)
  }
  addProjectRoutes(app, { pool, keys, create, onHalt })
  addSettingsRoutes(app, { pool, org: services.org, onReady: services.onReady })
  addKeyRoutes(app, { pool, keys, create })
  addMemberRoutes(app, { pool, create, publicUrl: options.publicUrl })
  addAuditRoutes(app, { pool })
  const streams = createOpenStreams(options.streamsPerKey)
  const shared = { pool, cipher, log, keys, cookie, limits, streams, places, services, publicUrl: options.publicUrl }
  addRunParts(app, { ...idempotency, ...shared })
  addMeRoutes(app, { pool })
  addSessionRoutes(app, { pool, limits, cookie, allowedOrigins: origins })
  addInvitationRoutes(app, { pool, limits, cookie, allowedOrigins: origins })
  addResetRoutes(app, { pool, create, publicUrl: options.publicUrl, limits, cookie, allowedOrigins: origins })
  addPageRoutes(app)
  return app
}

interface RunParts extends Idempotency {
  pool: Pool
  cipher: Cipher
  log: Log
  keys: KeyCache
  cookie: SessionCookie
  limits: RateLimits
  streams: OpenStreams
  places: ProjectPlaces
  services: RunServices
  publicUrl: URL
}

function addRunParts(app: App, parts: RunParts): void {
  const { services } = parts
  const stillAdmitted = createStillAdmitted({ ...parts, db: parts.pool })
  const track = trackLongRequests(app, parts.places)
  const ended = createEndedRuns(parts.pool)
  addAgentRoutes(app, { ...parts, rules: services.agentRules, org: services.org })
  addOrgRoutes(app, { ...parts, journal: services.journal, org: services.org })
  addScheduleRoutes(app, parts)
  addToolRoutes(app, services)
  addMcpServerRoutes(app, { ...parts, mcp: services.mcp })
  addTaskRoutes(app, { ...parts, ...services })
  addObjectRoutes(app, { ...parts, writer: services.writer, onReady: services.onReady })
  addRelationshipRoutes(app, parts)
  addProcessingLogRoutes(app, { ...parts, onReady: services.onReady })
  addRunRoutes(app, { ...parts, track })
  addHookRoutes(app, parts)
  addHookDeliveryRoutes(app, parts)
  addRunEventRoutes(app, { ...parts, track, stillAdmitted })
  addFlowTemplateRoutes(app, { ...parts, decide: services.flows.decide })
  addFlowRoutes(app, { ...parts, flows: services.flows })
  addFlowRunRoutes(app, { ...parts, flows: services.flows })
  addFlowTraceRoutes(app, { ...parts, ended })
  addFlowTopologyRoutes(app, { ...parts, ended, flows: services.flows })
  addAlertRoutes(app, parts)
  addFlowEventRoutes(app, { ...parts, track, stillAdmitted })
}

const requestId = (sent: string | string[] | undefined): string =>
  typeof sent === 'string' && /^[\w.-]{1,100}$/.test(sent) ? sent : newId()

/** The origins of Muster's own pages. On a loopback address people type any of its names for the same machine. */
function allowedOrigins(publicUrl: URL): ReadonlySet<string> {
  const loopback = ['localhost', '127.0.0.1', '[::1]']
  if (!loopback.includes(publicUrl.hostname)) return new Set([publicUrl.origin])
  const port = publicUrl.port ? `:${publicUrl.port}` : ''
  return new Set(loopback.map((host) => `${publicUrl.protocol}//${host}${port}`))
}
