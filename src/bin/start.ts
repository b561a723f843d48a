// `muster start` claims the data folder, starts the database, migrates it and serves, and stops all of it in the
// reverse order. This file starts the database; serve.ts, which loads most of Muster, is read meanwhile.
import { relative } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { LoadedApp } from '../app-modules/load-app.ts'
import { claimDataFolder } from '../db/embedded/data-folder.ts'
import { setFaultPlan } from '../kernel/fault.ts'
import type { Logger } from '../observe/logger.ts'
import { banner } from './banner.ts'
import type { Config } from './config.ts'
import { migrateDatabase, openDatabase } from './database.ts'
import { patiently } from './patiently.ts'
import { createProcessLog } from './process-log.ts'
import { configuredAddresses } from './running-address.ts'
import { readInstanceSecrets } from './secrets.ts'
import type { Foundation } from './serve.ts'
import { createShutdown, type Shutdown } from './shutdown.ts'
import type { Terminal } from './terminal.ts'

const SHORT_SECRET = 16
/** Loading keeps this process busy for a second; by then PostgreSQL's own processes are at work beside it. */
const HEAD_START_MS = 60

export async function start(config: Config, terminal: Terminal): Promise<void> {
  setFaultPlan(config.faultPlan)
  const log = await createProcessLog(config, terminal)
  const shutdown = createShutdown(log, config.drainMs)
  try {
    const [foundation, { serve }] = await Promise.all([
      openFoundation(config, log, terminal, shutdown),
      wait(HEAD_START_MS).then(() => import('./serve.ts')),
    ])
    const { signInLink: link } = await serve(foundation)
    const near = relative(process.cwd(), config.dataDir)
    const dataDir = near.startsWith('..') ? config.dataDir : near
    const rows: [string, string][] = [['Data', `${dataDir} (${foundation.database.description})`]]
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

/** What the parts that work stand on: the secrets, the app module, and the database at its newest version. */
async function openFoundation(
  config: Config,
  log: Logger,
  terminal: Terminal,
  shutdown: Shutdown,
): Promise<Foundation> {
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
  return { config, log, shutdown, secrets, code, database }
}

/** The sentence of a failure is printed; the stack of the author's code is in the log. */
async function loadLogged(path: string, log: Logger): Promise<LoadedApp> {
  const { loadApp } = await import('../app-modules/load-app.ts')
  return loadApp(path).catch((error: unknown) => {
    if (error instanceof Error && error.cause instanceof Error) log.error({ err: error.cause }, error.message)
    throw error
  })
}

function warnOfShortSecrets(config: Config, log: Logger): void {
  const given = { MUSTER_ADMIN_TOKEN: config.adminToken, MUSTER_SECRET_KEY: config.secretKey }
  for (const [variable, value] of Object.entries(given)) {
    if (value !== null && value.length < SHORT_SECRET) {
      log.warn({ variable }, `${variable} is shorter than ${SHORT_SECRET} characters and can be guessed`)
    }
  }
}
