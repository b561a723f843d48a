// `muster start` claims the data folder, starts the database, migrates it and serves, and stops all of it in the
// reverse order. Only this file wires the parts together.
import { relative } from 'node:path'
import { createServer } from '../api/server.ts'
import { followCode } from '../app-modules/follow-code.ts'
import { type LoadedApp, loadApp } from '../app-modules/load-app.ts'
import { claimDataFolder } from '../db/embedded/data-folder.ts'
import { START_PATIENCE_MS, whileUnavailable } from '../db/patience.ts'
import { createPool, type Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { createEgress } from '../egress/egress.ts'
import { createBuiltInFunctions } from '../flows/definition/built-in-functions.ts'
import { builtInPatterns } from '../flows/machine/built-in-patterns.ts'
import { bindInstance } from '../identity/instance.ts'
import { createSignInLink } from '../identity/sign-in-links.ts'
import { ensureInstanceAdmin } from '../identity/users.ts'
import { setFaultPlan } from '../kernel/fault.ts'
import { createObjectWriter } from '../objects/write-objects.ts'
import type { Logger } from '../observe/logger.ts'
import { createMetrics } from '../observe/metrics.ts'
import { type Cipher, createCipher } from '../secrets/cipher.ts'
import { reactions } from '../triggers/reactions.ts'
import { startScheduler } from '../triggers/scheduler.ts'
import { banner } from './banner.ts'
import type { Config } from './config.ts'
import { type Database, migrateDatabase, openDatabase } from './database.ts'
import { createDemo } from './demo.ts'
import { offerOllama, offerProviders } from './environment-providers.ts'
import { startEvals } from './eval-services.ts'
import { startFlows } from './flow-services.ts'
import { startHousekeeping } from './housekeeping.ts'
import { listen } from './listen.ts'
import { startOrg } from './org-services.ts'
import { createProcessLog } from './process-log.ts'
import { startRuns } from './run-services.ts'
import { configuredAddresses, forgetAddresses, noteAddresses } from './running-address.ts'
import { readInstanceSecrets } from './secrets.ts'
import { createShutdown } from './shutdown.ts'
import type { Terminal } from './terminal.ts'
import { openTracing, traceUrls } from './tracing.ts'
import { version } from './version.ts'

const SHORT_SECRET = 16
const DATABASE_ANSWERS_WITHIN_MS = 1_000

export async function start(config: Config, terminal: Terminal): Promise<void> {
  setFaultPlan(config.faultPlan)
  const log = await createProcessLog(config, terminal)
  const shutdown = createShutdown(log, config.drainMs)
  try {
    const { database, pool } = await startParts(config, log, terminal, shutdown)
    const newLink = () => newSignInLink(pool, config.publicUrl)
    const hasPeople = config.role !== 'worker' && (config.serve === 'all' || config.serve === 'agent')
    const link = hasPeople ? await patiently(newLink) : null
    const near = relative(process.cwd(), config.dataDir)
    const dataDir = near.startsWith('..') ? config.dataDir : near
    const rows: [string, string][] = [['Data', `${dataDir} (${database.description})`]]
    const base = config.serve === 'all' ? config.publicUrl : configuredAddresses(config).listen
    if (config.role !== 'worker') rows.unshift(['API', new URL('/docs', base).href])
    if (link) rows.unshift(['Sign in', `${terminal.paint('cyan', link)}  (works once, for an hour)`])
    const hint = 'The admin token for scripts: npm run muster -- keys admin'
    terminal.print(banner({ config, terminal, rows, hint }))
  } catch (error) {
    terminal.clearProgress()
    await shutdown.now()
    throw error
  }
}

type Shutdown = ReturnType<typeof createShutdown>

/** The parts below all work: the app module, the database and its secrets, connections, the way out, traces. */
async function openParts(config: Config, log: Logger, terminal: Terminal, shutdown: Shutdown) {
  const progress = (sentence: string): void => terminal.progress(sentence)
  const claim = await claimDataFolder(config.dataDir)
  shutdown.last('data folder', () => claim.release())
  const secrets = await readInstanceSecrets(config, log)
  for (const secret of [secrets.adminToken, secrets.secretKey]) log.registerSecret(secret)
  if (config.prompts?.key) log.registerSecret(config.prompts.key)
  warnOfShortSecrets(config, log)
  const code = config.app === null ? null : await loadLogged(config.app, log)

  const database = await openDatabase(config, log, progress, (stop) => shutdown.last('database', stop))
  log.registerSecret(database.url)
  await patiently(() => migrateDatabase(database.url, log, progress))
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
  return { secrets, code, database, pool, cipher, instanceId, egress, tracing, metrics }
}

async function startParts(
  config: Config,
  log: Logger,
  terminal: Terminal,
  shutdown: Shutdown,
): Promise<{ database: Database; pool: Pool }> {
  const parts = await openParts(config, log, terminal, shutdown)
  const { secrets, code, database, pool, cipher, instanceId, egress, tracing, metrics } = parts
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
  return { database, pool }
}

/** The sentence of a failure is printed; the stack of the author's code is in the log. */
async function loadLogged(path: string, log: Logger): Promise<LoadedApp> {
  return loadApp(path).catch((error: unknown) => {
    if (error instanceof Error && error.cause instanceof Error) log.error({ err: error.cause }, error.message)
    throw error
  })
}

/** The database may answer slowly at a start, because runs of an earlier start may hold every connection at first. */
const patiently = <Result>(work: () => Promise<Result>): Promise<Result> => whileUnavailable(START_PATIENCE_MS, work)

function warnOfShortSecrets(config: Config, log: Logger): void {
  const given = { MUSTER_ADMIN_TOKEN: config.adminToken, MUSTER_SECRET_KEY: config.secretKey }
  for (const [variable, value] of Object.entries(given)) {
    if (value !== null && value.length < SHORT_SECRET) {
      log.warn({ variable }, `${variable} is shorter than ${SHORT_SECRET} characters and can be guessed`)
    }
  }
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
