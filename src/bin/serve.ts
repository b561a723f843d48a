// The parts of a server that work: runs, flows, the organisation, evals, schedules and the API. Only this file wires
// them together.
import { createServer } from '../api/server.ts'
import { followCode } from '../app-modules/follow-code.ts'
import type { LoadedApp } from '../app-modules/load-app.ts'
import { createPool, type Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { createEgress } from '../egress/egress.ts'
import { createBuiltInFunctions } from '../flows/definition/built-in-functions.ts'
import { builtInPatterns } from '../flows/machine/built-in-patterns.ts'
import { bindInstance } from '../identity/instance.ts'
import { createSignInLink } from '../identity/sign-in-links.ts'
import { ensureInstanceAdmin } from '../identity/users.ts'
import { createObjectWriter } from '../objects/write-objects.ts'
import type { Logger } from '../observe/logger.ts'
import { createMetrics } from '../observe/metrics.ts'
import { type Cipher, createCipher } from '../secrets/cipher.ts'
import { reactions } from '../triggers/reactions.ts'
import { startScheduler } from '../triggers/scheduler.ts'
import type { Config } from './config.ts'
import type { Database } from './database.ts'
import { createDemo } from './demo.ts'
import { offerOllama, offerProviders } from './environment-providers.ts'
import { startEvals } from './eval-services.ts'
import { startFlows } from './flow-services.ts'
import { startHousekeeping } from './housekeeping.ts'
import { listen } from './listen.ts'
import { startOrg } from './org-services.ts'
import { patiently } from './patiently.ts'
import { startRuns } from './run-services.ts'
import { forgetAddresses, noteAddresses } from './running-address.ts'
import type { InstanceSecrets } from './secrets.ts'
import type { Shutdown } from './shutdown.ts'
import { openTracing, traceUrls } from './tracing.ts'
import { version } from './version.ts'

const DATABASE_ANSWERS_WITHIN_MS = 1_000

export interface Foundation {
  config: Config
  log: Logger
  shutdown: Shutdown
  secrets: InstanceSecrets
  /** The app module; null if there is none. */
  code: LoadedApp | null
  /** Migrated. */
  database: Database
}

/** Connections, the way out, and what is watched. */
async function openParts({ config, log, shutdown, secrets, database }: Foundation) {
  const pool = createPool({ url: database.url, max: config.pool, log })
  shutdown.last('connections', () => pool.end())
  const cipher = createCipher(secrets.secretKey)
  const instanceId = await patiently(() => prepareInstance(config, pool, cipher, log))
  const egress = createEgress({ allow: config.egressAllow })
  shutdown.last('egress', () => egress.close())
  const tracing = await openTracing(config, egress, log)
  shutdown.last('traces', () => tracing.stop())
  const metrics = createMetrics({ log })
  metrics.watchPool(pool)
  return { pool, cipher, instanceId, egress, tracing, metrics }
}

/** Starts all parts. The link is null for a process that serves no people. */
export async function serve(foundation: Foundation): Promise<{ signInLink: string | null }> {
  const { config, log, shutdown, secrets, code, database } = foundation
  const { pool, cipher, instanceId, egress, tracing, metrics } = await openParts(foundation)
  const patterns = builtInPatterns
  const builtIn = createBuiltInFunctions({ ask: (...question) => runs.ask(...question) })
  const functions = new Map([...builtIn, ...(code?.functions ?? [])])
  const runs = await startRuns({
    config,
    app: code,
    beforeWork: async (agents) => {
      const rules = { agents, flows: { functions, patterns } }
      if (code) await patiently(() => followCode(pool, code, rules, log))
    },
    databaseUrl: database.url,
    pool,
    cipher,
    egress,
    metrics,
    tracing,
    log,
  })
  shutdown.last('runs', () => runs.stop(), runs.worker.hurry)
  const { role, concurrency, drainMs } = config
  const { worker, services } = runs
  const flows = startFlows({
    patterns,
    role,
    concurrency,
    drainMs,
    pool,
    worker,
    runs: services,
    functions,
    decide: runs.decide,
    log,
  })
  shutdown.last('flows', () => flows.stop(), flows.hurry)
  const org = startOrg({ role, pool, worker, log: runs.orgLog })
  shutdown.last('organisation', () => org.stop())
  const evals = startEvals({ role, pool, journal: services.journal, worker, log })
  shutdown.last('evals', () => evals.stop())

  const app = await createServer({
    pool,
    cipher,
    log,
    metrics,
    tracer: tracing,
    traceUrlOf: traceUrls(config, egress, log),
    adminToken: secrets.adminToken,
    instanceId,
    publicUrl: config.publicUrl,
    trustProxy: config.trustProxy,
    rateLimit: config.rateLimit,
    role: config.role,
    serve: config.serve === 'ui' ? 'all' : config.serve,
    version,
    runs: { ...services, flows: flows.services, org: org.services },
    readiness: async () => {
      const isUp = !shutdown.isUnderWay() && database.isUp() && (await answers(pool))
      const isRecovering = runs.worker.isRecovering() && flows.isRecovering() && org.isWorking() && evals.isWorking()
      return { database: isUp, migrations: true, worker: !shutdown.isUnderWay() && isRecovering }
    },
  })
  shutdown.last('addresses', () => forgetAddresses(config))
  shutdown.last('server', () => app.close())
  await listen(app, config)
  await noteAddresses(config)
  const housekeeping = startHousekeeping({ pool, journal: runs.services.journal, log })
  shutdown.last('housekeeping', () => housekeeping.stop())
  if (config.role !== 'api') {
    const scheduler = startScheduler({ pool, log, onReady: runs.services.onReady })
    shutdown.last('schedules', () => scheduler.stop())
  }
  shutdown.last('new work', async () => {
    // From here on runs and flows drain in parallel, while the server answers its last requests.
    runs.worker.yield()
    flows.yield()
  })
  if (config.providers.findOllama && config.serve !== 'prompts') void offerOllama(pool, cipher, egress, log)
  const hasPeople = config.role !== 'worker' && (config.serve === 'all' || config.serve === 'agent')
  return { signInLink: hasPeople ? await patiently(() => newSignInLink(pool, config.publicUrl)) : null }
}

async function prepareInstance(config: Config, pool: Pool, cipher: Cipher, log: Logger): Promise<string> {
  // All of it is one transaction, so that a first start that is killed in between is a first start again.
  const instanceId = await inTransaction(pool, async (tx) => {
    const { id, isFirstStart } = await bindInstance(tx, cipher.fingerprint())
    if (isFirstStart && config.demo) {
      await createDemo(tx, createObjectWriter({ pool, setsOff: reactions({ isAnnounced: false }) }), log)
    }
    return id
  })
  await offerProviders(pool, cipher, config.providers)
  return instanceId
}

async function newSignInLink(pool: Pool, publicUrl: URL): Promise<string> {
  const admin = await ensureInstanceAdmin(pool)
  return new URL(`/sign-in/${await createSignInLink(pool, admin.id)}`, publicUrl).href
}

async function answers(pool: Pool): Promise<boolean> {
  const timeout = AbortSignal.timeout(DATABASE_ANSWERS_WITHIN_MS)
  const late = new Promise<boolean>((resolve) =>
    timeout.addEventListener('abort', () => resolve(false), { once: true }),
  )
  const asked = pool.query('select 1').then(
    () => true,
    () => false,
  )
  return Promise.race([asked, late])
}
