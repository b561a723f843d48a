// The small subcommands: migrate, status, keys.
import { existsSync } from 'node:fs'
import { schemaVersion } from '../db/migrate.ts'
import { createPool, type Pool } from '../db/pool.ts'
import { createEgress } from '../egress/egress.ts'
import { createSignInLink } from '../identity/sign-in-links.ts'
import { ensureInstanceAdmin } from '../identity/users.ts'
import { silentLog } from '../kernel/log.ts'
import { type Config, ConfigError } from './config.ts'
import { migrateDatabase } from './database.ts'
import { findAddresses } from './running-address.ts'
import { readRunningPid } from './running-pid.ts'
import { readInstanceSecrets } from './secrets.ts'
import type { Terminal } from './terminal.ts'
import { withDatabase } from './with-database.ts'

export async function migrateCommand(config: Config, terminal: Terminal): Promise<void> {
  const progress = (sentence: string): void => terminal.progress(sentence)
  const count = await withDatabase(config, silentLog, (url) => migrateDatabase(url, silentLog, progress), progress)
  terminal.print(count === 0 ? 'The database is up to date.' : `Applied ${count} migration${count === 1 ? '' : 's'}.`)
}

/** Exits 0 only when the server answers that it is ready. */
export async function statusCommand(config: Config, terminal: Terminal): Promise<void> {
  const pid = await readRunningPid(config.dataDir)
  const { listen } = await findAddresses(config)
  const readiness = await askReadiness(listen)
  terminal.print(
    pid === null ? 'No server runs on this data folder.' : `A server runs on this data folder (pid ${pid}).`,
  )
  terminal.print(`${listen}: ${readiness}`)
  if (readiness !== 'ready') process.exitCode = 1
}

export async function keysCommand(config: Config, what: string, terminal: Terminal): Promise<void> {
  switch (what) {
    case 'admin': {
      if (config.adminToken === null) requireDataFolder(config)
      terminal.print((await readInstanceSecrets(config, silentLog)).adminToken)
      return
    }
    case 'link': {
      if (config.databaseUrl === null) requireDataFolder(config)
      const link = await withDatabase(config, silentLog, (url) => withPool(url, (pool) => makeLink(config, pool)))
      terminal.print(link)
      return
    }
    default:
      throw new ConfigError(`keys takes admin or link, not ${what}.`)
  }
}

function requireDataFolder(config: Config): void {
  if (existsSync(config.dataDir)) return
  throw new Error(`There is no data folder at ${config.dataDir}. Start Muster once, or name it with --data-dir.`)
}

async function makeLink(config: Config, pool: Pool): Promise<string> {
  if ((await schemaVersion(pool)) === 0) throw new Error('This database is empty. Start Muster once.')
  const admin = await ensureInstanceAdmin(pool)
  const addresses = await findAddresses(config)
  return new URL(`/sign-in/${await createSignInLink(pool, admin.id)}`, addresses.public).href
}

async function withPool<Result>(url: string, use: (pool: Pool) => Promise<Result>): Promise<Result> {
  const pool = createPool({ url, max: 1, log: silentLog })
  try {
    return await use(pool)
  } finally {
    await pool.end()
  }
}

async function askReadiness(listen: string): Promise<string> {
  const egress = createEgress({ allow: [] })
  try {
    const answer = await egress.fetch('trusted')(`${listen}/readyz`, { signal: AbortSignal.timeout(3_000) })
    await answer.body?.cancel()
    return answer.ok ? 'ready' : `not ready (${answer.status})`
  } catch {
    return 'no answer'
  } finally {
    await egress.close()
  }
}
