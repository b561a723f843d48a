// The small subcommands: migrate, status, keys.
import { existsSync } from 'node:fs'
import { createPool, type Pool } from '../db/pool.ts'
import { createEgress } from '../egress/egress.ts'
import { createSignInLink } from '../identity/sign-in-links.ts'
import { ensureInstanceAdmin } from '../identity/users.ts'
import { silentLog } from '../kernel/log.ts'
import { type Config, ConfigError, urlHost } from './config.ts'
import { migrateDatabase } from './database.ts'
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
  const readiness = await askReadiness(config)
  terminal.print(
    pid === null ? 'No server runs on this data folder.' : `A server runs on this data folder (pid ${pid}).`,
  )
  terminal.print(`${config.publicUrl.origin}: ${readiness}`)
  if (readiness !== 'ready') process.exitCode = 1
}

export async function keysCommand(config: Config, what: string, terminal: Terminal): Promise<void> {
  switch (what) {
    case 'admin': {
      if (config.adminToken === null && !existsSync(config.dataDir)) {
        throw new Error(`There is no data folder at ${config.dataDir}. Start Muster once, or name it with --data-dir.`)
      }
      terminal.print((await readInstanceSecrets(config, silentLog)).adminToken)
      return
    }
    case 'link': {
      const link = await withDatabase(config, silentLog, (url) => withPool(url, (pool) => makeLink(config, pool)))
      terminal.print(link)
      return
    }
    default:
      throw new ConfigError(`keys takes admin or link, not ${what}.`)
  }
}

async function makeLink(config: Config, pool: Pool): Promise<string> {
  const admin = await ensureInstanceAdmin(pool)
  return new URL(`/sign-in/${await createSignInLink(pool, admin.id)}`, config.publicUrl).href
}

async function withPool<Result>(url: string, use: (pool: Pool) => Promise<Result>): Promise<Result> {
  const pool = createPool({ url, max: 1, log: silentLog })
  try {
    return await use(pool)
  } finally {
    await pool.end()
  }
}

async function askReadiness(config: Config): Promise<string> {
  const egress = createEgress({ allow: [] })
  try {
    // Where it listens on this machine; the public address may be that of a proxy elsewhere.
    const url = `http://${urlHost(config.host)}:${config.port}/readyz`
    const answer = await egress.fetch('trusted')(url, { signal: AbortSignal.timeout(3_000) })
    await answer.body?.cancel()
    return answer.ok ? 'ready' : `not ready (${answer.status})`
  } catch {
    return 'no answer'
  } finally {
    await egress.close()
  }
}
