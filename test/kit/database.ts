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

/** Rows that several files begin with. They are made once, and cloned for each file. */
export interface Content {
  name: string
  fill: (url: string) => Promise<void>
}

export async function createTestDatabase(
  options: Pick<PoolOptions, 'idleTimeoutMs'> & { content?: Content } = {},
): Promise<TestDatabase> {
  const serverUrl = await testServerUrl()
  const { withClock } = await ensureTemplates(serverUrl)
  const { content } = options
  // A copy of large files is faster than a copy by the write-ahead log, which is the default.
  const url = content
    ? await createDatabase(serverUrl, await ensureTemplate(serverUrl, withClock, content), 'strategy file_copy')
    : await createDatabase(serverUrl, withClock)
  const pool = createTestPool(url, 20, options)
  atEnd(async () => {
    await pool.end()
    await dropDatabase(serverUrl, url)
  })
  return { url, pool, clock: testClock(pool) }
}

/** Waits long for a connection on a busy machine. The product's own pool gives up after a second and answers 503. */
export function createTestPool(url: string, max: number, options: Pick<PoolOptions, 'idleTimeoutMs'> = {}): Pool {
  return createPool({ url, max, log: silentLog, connectTimeoutMs: 20_000, ...options })
}

/** An empty database, for tests of migrations. It is dropped when the file ends. */
export async function createEmptyDatabase(): Promise<string> {
  const serverUrl = await testServerUrl()
  return droppedAtEnd(serverUrl, await createDatabase(serverUrl, 'template0'))
}

/** A migrated database that no server has used yet, with the production clock. It is dropped when the file ends. */
export async function createUnusedDatabase(): Promise<string> {
  const serverUrl = await testServerUrl()
  return droppedAtEnd(serverUrl, await createDatabase(serverUrl, (await ensureTemplates(serverUrl)).plain))
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

async function createDatabase(serverUrl: string, template: string, how = ''): Promise<string> {
  const name = `muster_test_${randomUUID().replaceAll('-', '')}`
  await withClient(serverUrl, (client) => client.query(`create database "${name}" template "${template}" ${how}`))
  return renamed(serverUrl, name)
}

function droppedAtEnd(serverUrl: string, url: string): string {
  atEnd(() => dropDatabase(serverUrl, url))
  return url
}

async function dropDatabase(serverUrl: string, url: string): Promise<void> {
  await withClient(serverUrl, (client) => client.query(`drop database if exists "${nameOf(url)}" with (force)`))
}

/** Each set of migrations has templates of its own. */
async function ensureTemplates(serverUrl: string): Promise<{ plain: string; withClock: string }> {
  const migrations = await loadMigrations(migrationsFolder)
  const checksum = createHash('sha256')
    .update(migrations.map((migration) => migration.checksum).join())
    .digest('hex')
  const plain = await ensureTemplate(serverUrl, 'template0', {
    name: checksum.slice(0, 16),
    fill: async (url) => {
      await migrate({ url, migrations, log: silentLog })
    },
  })
  const withClock = await ensureTemplate(serverUrl, plain, {
    name: 'with_clock',
    fill: async (url) => {
      await withClient(url, (client) => client.query(SETTABLE_CLOCK))
    },
  })
  return { plain, withClock }
}

/** Returns the template's name. The lock makes sure that parallel test files make the template once. */
async function ensureTemplate(serverUrl: string, from: string, { name, fill }: Content): Promise<string> {
  const template = from === 'template0' ? `muster_template_${name}` : `${from}_${name}`
  await withClient(serverUrl, async (client) => {
    const exists = async (): Promise<boolean> =>
      (await client.query('select from pg_database where datname = $1', [template])).rowCount !== 0
    if (await exists()) return
    await client.query('select pg_advisory_lock(hashtext($1))', [template])
    if (await exists()) return
    const draft = `${template}_draft`
    await client.query(`drop database if exists "${draft}" with (force)`)
    await client.query(`create database "${draft}" template "${from}"`)
    await fill(renamed(serverUrl, draft))
    await client.query(`alter database "${draft}" rename to "${template}"`)
  })
  return template
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
