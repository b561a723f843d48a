// PostgreSQL for a bench: the embedded server with its production settings (fsync on), a database for each side.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createEmbeddedServer } from '../../src/db/embedded/embedded-server.ts'
import { loadMigrations, migrate } from '../../src/db/migrate.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { superuserUrl } from '../../test/kit/superuser.ts'

export interface BenchServer extends AsyncDisposable {
  /** Makes a new database with all migrations of the checkout (this one, if none is named). Returns its URL. */
  createDatabase(name: string, checkout?: string): Promise<string>
}

export async function startBenchServer(): Promise<BenchServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'muster-bench-'))
  const server = createEmbeddedServer({ dataDir, log: silentLog })
  await server.start()
  const stop = async (): Promise<void> => {
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
  // Otherwise the server would outlive a bench that is stopped half-way.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop().then(() => process.exit(130)))
  return {
    createDatabase: async (name, checkout = '.') => {
      const migrations = await loadMigrations(join(checkout, 'migrations'))
      const inServer = await superuserUrl(dataDir, server.url())
      await withClient(inServer, (client) => client.query(`create database "${name}" template template0`))
      const url = Object.assign(new URL(inServer), { pathname: `/${name}` }).href
      await migrate({ url, migrations, log: silentLog })
      return url
    },
    [Symbol.asyncDispose]: stop,
  }
}

export async function withClient<Result>(url: string, use: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}
