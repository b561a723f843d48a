// Numbered SQL files, forward only, each in a transaction together with its ledger row, all under one advisory lock:
// two servers that start at once migrate once. Files marked `-- no transaction` make indexes beside reads and writes
// (concurrent-indexes.ts). A server may meet a schema newer than itself (rolling change); it refuses only if one of the
// unknown migrations was marked `-- breaking`.
//
// A migration that waits for a lock on a table makes all later statements wait. A migration therefore waits two seconds
// at a time, gives up all its locks, and tries again a little later.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { changeIndex, indexStatements } from './concurrent-indexes.ts'
import { isRetryable, pgFailure } from './failures.ts'
import { setSession } from './session.ts'
import { commit } from './transaction.ts'

export interface Migration {
  version: number
  name: string
  sql: string
  checksum: string
  breaking: boolean
}

export interface MigrateOptions {
  url: string
  migrations: readonly Migration[]
  log: Log
  onProgress?: (sentence: string) => void
  /** The time a migration waits for a lock before it gives up all its locks and tries again. */
  lockTimeoutMs?: number
  /** The time a migration is retried while others hold the tables it must lock. */
  patienceMs?: number
}

const LOCK_KEY = 0x6d757374 // 'must'
const MINIMUM_SERVER = 150_000
const LOOK_FOR_LOCK_EVERY_MS = 100
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 5_000

export async function loadMigrations(folder: string): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort()
  return Promise.all(
    files.map(async (file, index) => {
      const version = Number(/^(\d{4})_[a-z0-9_]+\.sql$/.exec(file)?.[1])
      if (version !== index + 1) throw new Error(`Migration ${file} is misnamed or out of order.`)
      const sql = await readFile(join(folder, file), 'utf8')
      const checksum = createHash('sha256').update(sql).digest('hex')
      indexStatements(file, sql)
      return { version, name: file.replace('.sql', ''), sql, checksum, breaking: /^-- breaking\b/m.test(sql) }
    }),
  )
}

/** Brings the database to the newest version; returns the number of migrations that this call applied. */
export async function migrate(options: MigrateOptions): Promise<number> {
  const { url, migrations, log, onProgress } = options
  // A separate connection, without the pool's time-outs: a migration may take long, and so may waiting for one.
  const client = new pg.Client({
    connectionString: url,
    application_name: 'muster-migrate',
    connectionTimeoutMillis: 5_000,
  })
  client.on('error', (error) => log.warn({ error: error.message }, 'the migration connection was lost'))
  await client.connect()
  try {
    await setSession(client)
    await requireServerVersion(client)
    await lockAgainstOthers(client)
    const applied = await readLedger(client).catch(explainRights)
    requireCompatible(applied, migrations)
    const open = migrations.filter((migration) => !applied.has(migration.version))
    // An empty database is prepared in a moment; the tables of an old one may be large.
    const isNew = applied.size === 0
    if (isNew) {
      onProgress?.('Preparing the database.')
      // Nothing is lost if the machine fails now, and the first change afterwards makes all of it durable.
      await client.query('set synchronous_commit = off')
    }
    for (const migration of open) {
      if (!isNew) onProgress?.(`Preparing the database: ${migration.name}`)
      await apply(client, migration, options)
    }
    const names = open.map((migration) => migration.name)
    if (names.length > 0) log.info({ migrations: isNew ? names.length : names }, 'the database was migrated')
    return open.length
  } finally {
    await client.end().catch(() => {})
  }
}

/** The newest applied version, or 0 for a database that was never migrated. */
export async function schemaVersion(db: Pick<pg.Pool, 'query'>): Promise<number> {
  const exists = await db.query<{ found: boolean }>(`select to_regclass('muster.migrations') is not null as found`)
  if (!exists.rows[0]?.found) return 0
  const newest = await db.query<{ version: number }>(
    'select coalesce(max(version), 0)::int as version from muster.migrations',
  )
  return newest.rows[0]?.version ?? 0
}

async function requireServerVersion(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ number: string; text: string }>(
    `select current_setting('server_version_num') as number, current_setting('server_version') as text`,
  )
  if (Number(rows[0]?.number) < MINIMUM_SERVER) {
    throw new Error(`PostgreSQL 15 or newer is needed; this server is ${rows[0]?.text}.`)
  }
}

/** 42501 means no right to create; 25006 means a read-only role or a standby. */
function explainRights(error: unknown): never {
  const code = pgFailure(error)?.code
  if (code !== '42501' && code !== '25006') throw error
  throw new Error(
    'The role of DATABASE_URL must be able to create schemas and tables: make it the owner of its database.',
    {
      cause: error,
    },
  )
}

interface LedgerRow {
  version: number
  name: string
  checksum: string
  breaking: boolean
}

async function readLedger(client: pg.Client): Promise<Map<number, LedgerRow>> {
  await client.query(`
    create schema if not exists muster;
    create table if not exists muster.migrations (
      version integer primary key,
      name text not null,
      checksum text not null,
      breaking boolean not null,
      applied_at timestamptz not null default now()
    )`)
  const { rows } = await client.query<LedgerRow>('select version, name, checksum, breaking from muster.migrations')
  return new Map(rows.map((row) => [row.version, row]))
}

function requireCompatible(applied: Map<number, LedgerRow>, known: readonly Migration[]): void {
  const byVersion = new Map(known.map((migration) => [migration.version, migration]))
  for (const row of applied.values()) {
    const migration = byVersion.get(row.version)
    if (migration && migration.checksum !== row.checksum) {
      throw new Error(`Migration ${row.name} is not the one this database was made with. Use the release that made it.`)
    }
    if (!migration && row.breaking) {
      throw new Error(
        `This database was changed by a newer Muster in a way this one cannot read (${row.name}). Start the newer release.`,
      )
    }
  }
}

/**
 * Waiting in `pg_advisory_lock` would be a transaction under way. An index that is made concurrently waits for the end
 * of such transactions, so both would wait for ever.
 */
async function lockAgainstOthers(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [LOCK_KEY])
    if (rows[0]?.locked) return
    await wait(LOOK_FOR_LOCK_EVERY_MS)
  }
}

async function apply(client: pg.Client, migration: Migration, options: MigrateOptions): Promise<void> {
  const indexes = indexStatements(migration.name, migration.sql)
  try {
    if (indexes === null) return await applyPatiently(client, migration, options)
    for (const statement of indexes) await changeIndex(client, statement)
    await fault('migrate.mid')
    await writeLedger(client, migration)
  } catch (error) {
    throw new Error(`Migration ${migration.name} failed: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    })
  }
}

async function applyPatiently(
  client: pg.Client,
  migration: Migration,
  { onProgress, log, lockTimeoutMs = 2_000, patienceMs = 600_000 }: MigrateOptions,
): Promise<void> {
  const giveUpAt = performance.now() + patienceMs
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return await applyOnce(client, migration, lockTimeoutMs)
    } catch (error) {
      const isLocked = pgFailure(error)?.code === '55P03' || isRetryable(error)
      if (!isLocked) throw error
      if (performance.now() > giveUpAt) {
        throw new Error(
          'a long transaction holds a table that the migration must change. End that transaction and start again.',
          {
            cause: error,
          },
        )
      }
      log.warn({ migration: migration.name }, 'a migration waits for a table that others hold')
      onProgress?.(`Preparing the database: ${migration.name} waits for a table that others hold`)
      await wait(pauseMs * (0.5 + Math.random()))
    }
  }
}

async function applyOnce(client: pg.Client, migration: Migration, lockTimeoutMs: number): Promise<void> {
  await client.query('begin')
  try {
    await client.query(`set local lock_timeout = ${lockTimeoutMs}`)
    await client.query(migration.sql)
    await fault('migrate.mid')
    await writeLedger(client, migration)
    await commit(client)
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

async function writeLedger(client: pg.Client, { version, name, checksum, breaking }: Migration): Promise<void> {
  await client.query('insert into muster.migrations (version, name, checksum, breaking) values ($1, $2, $3, $4)', [
    version,
    name,
    checksum,
    breaking,
  ])
}
