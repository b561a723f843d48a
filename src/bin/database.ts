// The PostgreSQL server of this process: the server that DATABASE_URL names, or the embedded one in the data folder.
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { clusterFolder } from '../db/embedded/cluster-place.ts'
import { createEmbeddedServer } from '../db/embedded/embedded-server.ts'
import { isUnavailable } from '../db/failures.ts'
import { loadMigrations, migrate } from '../db/migrate.ts'
import { requireSessions } from '../db/session.ts'
import type { Log } from '../kernel/log.ts'
import type { Config } from './config.ts'

export interface Database {
  url: string
  description: string
  isUp(): boolean
  stop(): Promise<void>
}

export const migrationsFolder = fileURLToPath(new URL('../../migrations', import.meta.url))

const WAIT_FOR_EXTERNAL_MS = 30_000

/**
 * Returns a database that answers and is not migrated yet. The start takes seconds, so `onStoppable` gets the function
 * that stops the database before it.
 */
export async function openDatabase(
  config: Config,
  log: Log,
  onProgress: (sentence: string) => void,
  onStoppable: (stop: () => Promise<void>) => void = () => {},
): Promise<Database> {
  if (config.databaseUrl !== null) {
    await waitForExternal(config.databaseUrl, onProgress)
    await requireSessions(config.databaseUrl)
    return { url: config.databaseUrl, description: 'external PostgreSQL', isUp: () => true, stop: async () => {} }
  }
  const server = createEmbeddedServer({ dataDir: config.dataDir, log, onProgress })
  onStoppable(() => server.stop())
  const outcome = await server.start()
  return {
    url: server.url(),
    description: `embedded PostgreSQL, ${outcome}${await whereElse(config.dataDir)}`,
    isUp: () => server.state() === 'running',
    stop: () => server.stop(),
  }
}

/** Under root the cluster may lie outside the data folder, in a place PostgreSQL's user can reach; people must know. */
async function whereElse(dataDir: string): Promise<string> {
  const folder = await clusterFolder(dataDir)
  return folder.startsWith(`${dataDir}/`) ? '' : `, in ${folder}`
}

export async function migrateDatabase(url: string, log: Log, onProgress: (sentence: string) => void): Promise<number> {
  return migrate({ url, migrations: await loadMigrations(migrationsFolder), log, onProgress })
}

/** Waits for a database that starts beside Muster (compose, a reboot); reports a wrong address or password at once. */
async function waitForExternal(url: string, onProgress: (sentence: string) => void): Promise<void> {
  const deadline = Date.now() + WAIT_FOR_EXTERNAL_MS
  for (let attempt = 1; ; attempt++) {
    const failure = await tryToConnect(url)
    if (!failure) return
    const mayPass = isUnavailable(failure)
    if (!mayPass || Date.now() > deadline) {
      throw new Error(`DATABASE_URL cannot be used: ${reasonOf(failure)}`, { cause: failure })
    }
    if (attempt === 1) onProgress(`Waiting for the database (${reasonOf(failure)})`)
    await wait(500)
  }
}

/** A name with several addresses fails once for each address; the error around these failures has no message. */
function reasonOf(failure: Error): string {
  const messages = failure instanceof AggregateError ? failure.errors.map((error: Error) => error.message) : []
  return failure.message || messages.join(', ') || failure.name
}

async function tryToConnect(url: string): Promise<Error | null> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 3_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    return null
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  } finally {
    await client.end().catch(() => {})
  }
}
