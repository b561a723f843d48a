// The common parts of tests of backup and restore: folders, databases with tables of every kind, and their dumps.
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type BackupSummary, writeBackup } from '../../src/db/backup.ts'
import { loadMigrations, type Migration, migrate } from '../../src/db/migrate.ts'
import { openBackup } from '../../src/db/open-backup.ts'
import { type RestoreOptions, type RestoreSummary, restoreBackup } from '../../src/db/restore.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { createEmptyDatabase, dumpRows, migrationsFolder } from './database.ts'
import { withClient } from './test-server.ts'

export const never = new AbortController().signal
export const released = await loadMigrations(migrationsFolder)

export async function makeBackupFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-backup-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** The released migrations with further ones. */
export function withMigrations(...sqls: string[]): Migration[] {
  const further = sqls.map((sql, index) => {
    const version = released.length + index + 1
    const checksum = createHash('sha256').update(sql).digest('hex')
    return { version, name: `${String(version).padStart(4, '0')}_of_a_test`, sql, checksum, breaking: false }
  })
  return [...released, ...further]
}

export async function createMigrated(migrations: readonly Migration[] = released): Promise<string> {
  const url = await createEmptyDatabase()
  await migrate({ url, migrations, log: silentLog })
  return url
}

export async function run(url: string, ...sqls: string[]): Promise<Record<string, unknown>[]> {
  return withClient(url, async (client) => {
    await client.query('set search_path = public')
    let rows: Record<string, unknown>[] = []
    for (const sql of sqls) rows = (await client.query(sql)).rows
    return rows
  })
}

export function backUp(url: string, file: string, secrets: Record<string, string> = {}): Promise<BackupSummary> {
  const held = new Map(Object.entries(secrets))
  return writeBackup({ url, file, musterVersion: '0.1.0', keyFingerprint: null, secrets: held, signal: never })
}

export async function restore(
  url: string,
  file: string,
  options: Partial<Omit<RestoreOptions, 'url' | 'backup'>> = {},
): Promise<RestoreSummary> {
  const backup = await openBackup(file)
  try {
    return await restoreBackup({ url, backup, migrations: released, signal: never, log: silentLog, ...options })
  } finally {
    await backup.close()
  }
}

/** Every row of every table, the ledger of migrations included. */
export function dump(url: string): Promise<Record<string, string[]>> {
  return withClient(url, (client) => dumpRows(client))
}

/**
 * The constraints, triggers and indexes of a schema. A test compares them to see that a restore puts all of them back.
 */
export async function describe(url: string): Promise<Record<string, unknown>[]> {
  return run(
    url,
    `select conrelid::regclass::text as "on", conname as name, pg_get_constraintdef(oid) as is from pg_constraint
       where connamespace::regnamespace::text not in ('pg_catalog', 'information_schema')
     union all select tgrelid::regclass::text, tgname, tgenabled::text from pg_trigger where not tgisinternal
     union all select schemaname || '.' || tablename, indexname, indexdef from pg_indexes
       where schemaname not in ('pg_catalog', 'information_schema')
     order by 1, 2, 3`,
  )
}
