// A database of its own for each test file, cloned from a migrated template in a few milliseconds, with a clock that
// tests set.
import { createHash, randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { loadMigrations, migrate } from '../../src/db/migrate.ts'
import { createPool, type Db, type Pool, type PoolOptions } from '../../src/db/pool.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { atEnd } from './at-end.ts'
import { testServerUrl } from './server.ts'
import { withClient } from './test-server.ts'

export interface TestDatabase {
  url: string
  pool: Pool
  clock: TestClock
}

export interface TestClock {
  /** Moves the database's clock: `muster.now()` is later (or earlier) by this time from then on. */
  advance(ms: number): Promise<void>
}

export const migrationsFolder = fileURLToPath(new URL('../../migrations', import.meta.url))

export async function createTestDatabase(options: Pick<PoolOptions, 'idleTimeoutMs'> = {}): Promise<TestDatabase> {
  const serverUrl = await testServerUrl()
  const template = await ensureTemplate(serverUrl)
  const url = await createDatabase(serverUrl, template)
  const pool = createTestPool(url, 20, options)
  atEnd(async () => {
    await pool.end()
    await withClient(serverUrl, (client) => client.query(`drop database if exists "${nameOf(url)}" with (force)`))
  })
  return { url, pool, clock: testClock(pool) }
}

/** Waits long for a connection on a busy machine. The product's own pool gives up after a second and answers 503. */
export function createTestPool(url: string, max: number, options: Pick<PoolOptions, 'idleTimeoutMs'> = {}): Pool {
  return createPool({ url, max, log: silentLog, connectTimeoutMs: 20_000, ...options })
}

/** An empty database, for tests of migrations and whole servers. It is dropped when the file ends. */
export async function createEmptyDatabase(): Promise<string> {
  const serverUrl = await testServerUrl()
  const url = await createDatabase(serverUrl, 'template0')
  atEnd(() => withClient(serverUrl, (client) => client.query(`drop database if exists "${nameOf(url)}" with (force)`)))
  return url
}

/** All rows of all tables, by table, as text. A test compares them to show that a refused request changed nothing. */
export async function dumpRows(db: Db): Promise<Record<string, string[]>> {
  const { rows: tables } = await db.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname in ('public', 'auth', 'muster') order by 1`,
  )
  const dump: Record<string, string[]> = {}
  for (const { name } of tables) {
    const { rows } = await db.query<{ line: string }>(`select t::text as line from ${name} t order by 1`)
    dump[name] = rows.map((row) => row.line)
  }
  return dump
}

async function createDatabase(serverUrl: string, template: string): Promise<string> {
  const name = `muster_test_${randomUUID().replaceAll('-', '')}`
  await withClient(serverUrl, (client) => client.query(`create database "${name}" template "${template}"`))
  return renamed(serverUrl, name)
}

/** Each set of migrations has one template. The lock makes sure that parallel test files make the template once. */
async function ensureTemplate(serverUrl: string): Promise<string> {
  const migrations = await loadMigrations(migrationsFolder)
  const checksum = createHash('sha256')
    .update(migrations.map((migration) => migration.checksum).join())
    .digest('hex')
  const name = `muster_template_${checksum.slice(0, 16)}`
  await withClient(serverUrl, async (client) => {
    await client.query('select pg_advisory_lock(77)')
    const { rowCount } = await client.query('select from pg_database where datname = $1', [name])
    if (rowCount) return
    const draft = `${name}_draft`
    await client.query(`drop database if exists "${draft}" with (force)`)
    await client.query(`create database "${draft}" template template0`)
    const url = renamed(serverUrl, draft)
    await migrate({ url, migrations, log: silentLog })
    await withClient(url, (inDraft) => inDraft.query(SETTABLE_CLOCK))
    await client.query(`alter database "${draft}" rename to "${name}"`)
  })
  return name
}

// Production's muster.now() is now(); only a test start replaces it.
const SETTABLE_CLOCK = `
  create table muster.test_clock (offset_ms bigint not null);
  insert into muster.test_clock values (0);
  create or replace function muster.now() returns timestamptz language sql stable as
    $$ select now() + (select offset_ms from muster.test_clock) * interval '1 ms' $$;`

function testClock(pool: Pool): TestClock {
  return {
    advance: async (ms) => {
      await pool.query('update muster.test_clock set offset_ms = offset_ms + $1', [ms])
    },
  }
}

const nameOf = (url: string): string => new URL(url).pathname.slice(1)

function renamed(url: string, database: string): string {
  const changed = new URL(url)
  changed.pathname = `/${database}`
  return changed.href
}
