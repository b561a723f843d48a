// The HTTP edge: Fastify, with zod schemas as the one source of types, validation and the OpenAPI document.

import cookies from '@fastify/cookie'
import type { Pool } from '../db/pool.ts'
import { createEndedRuns } from '../flows/history/ended-runs.ts'
import { createKeyCache, type KeyCache } from '../identity/key-cache.ts'
import type { Log } from '../kernel/log.ts'
import type { Cipher } from '../secrets/cipher.ts'
import { createSecretCheck } from '../secrets/hash.ts'
import { createFeed } from './feed/feed.ts'
import type { App } from './http/app.ts'
import { requireAccess } from './http/auth.ts'
import { type BaseOptions, createBaseServer } from './http/base-server.ts'
import { acceptJsonOnly } from './http/body.ts'
import { createIdempotency, type Idempotency } from './http/idempotency.ts'
import { type TrackRequest, trackLongRequests } from './http/long-requests.ts'
import { createOpenStreams, type OpenStreams } from './http/open-streams.ts'
import { serveOpenApi } from './http/openapi.ts'
import { createProjectPlaces, type ProjectPlaces, placesOf, requirePlaces } from './http/project-places.ts'
import { createRateLimits, type RateLimits } from './http/rate-limits.ts'
import { refuseUndeclared } from './http/refuse-undeclared.ts'
import type { RunServices } from './http/run-services.ts'
import { createSessionCookie, type SessionCookie } from './http/session-cookie.ts'
import { createProjectsNow, createStillAdmitted, type StillAdmitted } from './http/still-admitted.ts'
import { showTraceUrls, type TraceUrlOf } from './http/trace-urls.ts'
import { nounsOf } from './nouns.ts'
import { addAgentChatRoutes } from './routes/agent-chat.ts'
import { addAgentRunRoutes } from './routes/agent-run.ts'
import { addAgentRoutes } from './routes/agents.ts'
import { addAlertRoutes } from './routes/alerts.ts'
import { addAuditRoutes } from './routes/audit.ts'
import { addConsoleRoutes } from './routes/console.ts'
import { addEvalRoutes } from './routes/evals.ts'
import { addEventRoutes } from './routes/events.ts'
import { addFlowEventRoutes } from './routes/flow-events.ts'
import { addFlowRunRoutes } from './routes/flow-runs.ts'
import { addFlowTemplateRoutes } from './routes/flow-templates.ts'
import { addFlowTopologyRoutes } from './routes/flow-topology.ts'
import { addFlowTraceRoutes } from './routes/flow-traces.ts'
import { addFlowRoutes } from './routes/flows.ts'
import { addGenuiRoutes } from './routes/genui.ts'
import { addHomeRoutes } from './routes/home.ts'
import { addHookDeliveryRoutes } from './routes/hook-deliveries.ts'
import { addHookRoutes } from './routes/hooks.ts'
import { addInvitationRoutes } from './routes/invitations.ts'
import { addKeyRoutes } from './routes/keys.ts'
import { addMcpServerRoutes } from './routes/mcp-servers.ts'
import { addMeRoutes } from './routes/me.ts'
import { addMemberRoutes } from './routes/members.ts'
import { addObjectRoutes } from './routes/objects.ts'
import { addOrgRoutes } from './routes/org.ts'
import { addProcessingLogRoutes } from './routes/processing-log.ts'
import { addProjectRoutes } from './routes/projects.ts'
import { addPromptRoutes } from './routes/prompts.ts'
import { addProviderRoutes } from './routes/providers.ts'
import { addRelationshipRoutes } from './routes/relationships.ts'
import { addResetRoutes } from './routes/resets.ts'
import { addRunEventRoutes } from './routes/run-events.ts'
import { addRunRoutes } from './routes/runs.ts'
import { addScheduleRoutes } from './routes/schedule.ts'
import { addSearchRoutes } from './routes/search.ts'
import { addSessionRoutes } from './routes/sessions.ts'
import { addSettingsRoutes } from './routes/settings.ts'
import { addSystemRoutes, type Readiness } from './routes/system.ts'
import { addSystemVariantRoutes } from './routes/system-variants.ts'
import { addTaskRoutes } from './routes/tasks.ts'
import { addToolRoutes } from './routes/tools.ts'
import { addUsageRoutes } from './routes/usage.ts'
import { groupsOf, type Service } from './served-groups.ts'

export interface ServerOptions extends BaseOptions {
  pool: Pool
  cipher: Cipher
  adminToken: string
  /** The id under which a caller with the admin token acts. */
  instanceId: string
  rateLimit: number
  readiness: () => Promise<Readiness>
  version: string
  /** A worker serves health and metrics only. */
  role: 'all' | 'api' | 'worker'
  /** The service that this process is, which decides on its routes; `all` by default. */
  serve?: Exclude<Service, 'ui'>
  runs: RunServices
  /** The address at which people see a part of a trace, if there is a service for traces. */
  traceUrlOf?: TraceUrlOf | undefined
  /** Sign-ins per minute, by address and by account; 0 means no limit. */
  signInLimit?: number
  /** Streams that one key or person may have open; the instance admin may have any number. */
  streamsPerKey?: number
}

export async function createServer(options: ServerOptions): Promise<App> {
  const { pool, cipher, log, runs: services, serve = 'all' } = options
  const app = createBaseServer(options)
  acceptJsonOnly(app)
  refuseUndeclared(app)
  if (options.traceUrlOf) showTraceUrls(app, { db: pool, urlOf: options.traceUrlOf })
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
  const track = trackLongRequests(app, places)

  if (options.role !== 'worker')
    await serveOpenApi(app, { version: options.version, nouns: nounsOf(services.flows.patterns) })
  addSystemRoutes(app, options)
  if (options.role === 'worker') return app
  const groups = groupsOf(serve)
  const idempotency = createIdempotency({ pool, cipher })
  const { create } = idempotency
  if (groups.has('prompts')) addPromptRoutes(app, { pool, ...idempotency, prompts: services.prompts })
  if (groups.has('genui')) addGenuiRoutes(app, { pool, log, track, decide: services.flows.decide })
  if (!groups.has('api')) return app
  const { onProvider, testProvider } = services
  addProviderRoutes(app, { pool, cipher, create, onProvider, testProvider })
  const onHalt: RunServices['onHalt'] = async (projectId, isHalted) => {
    await services.onHalt(projectId, isHalted)
    services.org.poke(projectId)
  }
  addProjectRoutes(app, { pool, keys, create, onHalt })
  addSettingsRoutes(app, { pool, org: services.org, onReady: services.onReady })
  addKeyRoutes(app, { pool, keys, create })
  addMemberRoutes(app, { pool, create, publicUrl: options.publicUrl })
  addAuditRoutes(app, { pool })
  addSearchRoutes(app, { pool })
  addUsageRoutes(app, { pool })
  addHomeRoutes(app, { pool, places })
  const shared = { ...idempotency, pool, cipher, log, keys, cookie, limits, places, track, services }
  const parts = { ...shared, streams: createOpenStreams(options.streamsPerKey), publicUrl: options.publicUrl }
  const streaming = { ...parts, stillAdmitted: createStillAdmitted({ ...parts, db: pool }) }
  addAgentsAndObjects(app, parts)
  addRunsAndHooks(app, streaming)
  addFlows(app, streaming)
  addSupervisorAndEvals(app, streaming)
  addFeed(app, streaming)
  addMeRoutes(app, { pool })
  addSessionRoutes(app, { pool, limits, cookie, allowedOrigins: origins })
  addInvitationRoutes(app, { pool, limits, cookie, allowedOrigins: origins })
  addResetRoutes(app, { pool, create, publicUrl: options.publicUrl, limits, cookie, allowedOrigins: origins })
  if (groups.has('pages')) addConsoleRoutes(app)
  return app
}

interface RouteParts extends Idempotency {
  pool: Pool
  cipher: Cipher
  log: Log
  keys: KeyCache
  cookie: SessionCookie
  limits: RateLimits
  streams: OpenStreams
  places: ProjectPlaces
  track: TrackRequest
  services: RunServices
  publicUrl: URL
}

interface StreamingParts extends RouteParts {
  stillAdmitted: StillAdmitted
}

function addAgentsAndObjects(app: App, parts: RouteParts): void {
  const { agentRules: rules, org, journal, mcp, writer, onReady } = parts.services
  addAgentRoutes(app, { ...parts, rules, org })
  addOrgRoutes(app, { ...parts, journal, org })
  addScheduleRoutes(app, parts)
  addToolRoutes(app, parts.services)
  addMcpServerRoutes(app, { ...parts, mcp })
  addTaskRoutes(app, { ...parts, ...parts.services })
  addObjectRoutes(app, { ...parts, writer, onReady })
  addRelationshipRoutes(app, parts)
  addProcessingLogRoutes(app, { ...parts, onReady })
}

function addRunsAndHooks(app: App, parts: StreamingParts): void {
  addRunRoutes(app, parts)
  addHookRoutes(app, parts)
  addHookDeliveryRoutes(app, parts)
  addRunEventRoutes(app, parts)
}

function addFlows(app: App, parts: StreamingParts): void {
  const { flows } = parts.services
  const ended = createEndedRuns(parts.pool)
  addFlowTemplateRoutes(app, { ...parts, flows })
  addFlowRoutes(app, { ...parts, flows })
  addFlowRunRoutes(app, { ...parts, flows })
  addFlowTraceRoutes(app, { ...parts, ended, flows })
  addFlowTopologyRoutes(app, { ...parts, ended, flows })
  addAlertRoutes(app, parts)
  addFlowEventRoutes(app, parts)
}

function addSupervisorAndEvals(app: App, parts: StreamingParts): void {
  const { tools: registry, prompts } = parts.services
  const { systemVariant } = prompts
  addSystemVariantRoutes(app, { ...parts, registry, systemVariant })
  addAgentRunRoutes(app, { ...parts, systemVariant })
  addAgentChatRoutes(app, { ...parts, systemVariant })
  addEvalRoutes(app, parts)
}

function addFeed(app: App, parts: StreamingParts): void {
  const feed = createFeed({ db: parts.pool, log: parts.log })
  app.addHook('onClose', feed.stop)
  addEventRoutes(app, { ...parts, feed, projectsNow: createProjectsNow({ ...parts, db: parts.pool }) })
}

/** The origins of Muster's own pages. People may use any name of the loopback address for the same machine. */
function allowedOrigins(publicUrl: URL): ReadonlySet<string> {
  const loopback = ['localhost', '127.0.0.1', '[::1]']
  if (!loopback.includes(publicUrl.hostname)) return new Set([publicUrl.origin])
  const port = publicUrl.port ? `:${publicUrl.port}` : ''
  return new Set(loopback.map((host) => `${publicUrl.protocol}//${host}${port}`))
}
