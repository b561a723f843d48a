// The commands `muster backup` and `muster restore`: their questions, checks and messages.
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type BackupSummary, writeBackup } from '../db/backup.ts'
import { migrationsOf } from '../db/backup-manifest.ts'
import { withSession } from '../db/backup-session.ts'
import { claimDataFolder } from '../db/embedded/data-folder.ts'
import { isCode } from '../db/embedded/private-file.ts'
import { loadMigrations } from '../db/migrate.ts'
import { type OpenBackup, openBackup } from '../db/open-backup.ts'
import { type RestoreSummary, restoreBackup } from '../db/restore.ts'
import { readKeyFingerprint } from '../identity/key-fingerprint.ts'
import { silentLog } from '../kernel/log.ts'
import { holdsAdminToken, holdsSecretKey, planSecrets, readGeneratedSecrets, writeSecrets } from './backup-secrets.ts'
import type { Config } from './config.ts'
import { migrateDatabase, migrationsFolder, openDatabase } from './database.ts'
import { untilInterrupted } from './interruption.ts'
import type { Terminal } from './terminal.ts'
import { version } from './version.ts'
import { withDatabase } from './with-database.ts'

export interface BackupFlags {
  withoutSecrets: boolean
}

export async function backupCommand(
  config: Config,
  file: string,
  terminal: Terminal,
  flags: BackupFlags = { withoutSecrets: false },
): Promise<void> {
  const startedAt = performance.now()
  const target = resolve(file)
  requireDatabase(config)
  const progress = (sentence: string): void => terminal.progress(sentence)
  const { summary, secrets, keyFingerprint } = await untilInterrupted((signal) =>
    withDatabase(config, silentLog, (url) => backUp(config, url, target, flags, signal), progress),
  )
  const { rows, tables, bytes, leftOut } = summary
  terminal.print(`Wrote ${file}: ${contents({ rows, tables })}, ${sizeOf(bytes)}, in ${since(startedAt)}.`)
  if (keyFingerprint !== null) terminal.print(noteOnKey(config, secrets, flags))
  if (leftOut.length > 0) terminal.print(`Left out, because they have another owner: ${leftOut.join(', ')}.`)
}

async function backUp(
  config: Config,
  url: string,
  file: string,
  flags: BackupFlags,
  signal: AbortSignal,
): Promise<{ summary: BackupSummary; secrets: ReadonlyMap<string, string>; keyFingerprint: string | null }> {
  const keyFingerprint = await withSession(url, signal, readKeyFingerprint)
  const secrets = flags.withoutSecrets ? new Map<string, string>() : await readGeneratedSecrets(config, keyFingerprint)
  const summary = await writeBackup({ url, file, musterVersion: version, keyFingerprint, secrets, signal })
  return { summary, secrets, keyFingerprint }
}

/** Checks before anything is opened: a backup must not make a data folder only to find it empty. */
function requireDatabase(config: Config): void {
  if (config.databaseUrl !== null) return
  if (['postgres', 'postgres.location'].some((name) => existsSync(join(config.dataDir, name)))) return
  throw new Error(
    `There is no database in ${config.dataDir}: name the data folder with --data-dir, or set DATABASE_URL.`,
  )
}

function noteOnKey(config: Config, secrets: ReadonlyMap<string, string>, flags: BackupFlags): string {
  if (holdsSecretKey(secrets)) return 'The file contains the secret key: keep it as safe as the data folder itself.'
  if (flags.withoutSecrets) return 'The file contains no secrets: to restore it, set MUSTER_SECRET_KEY.'
  const where = config.secretKey === null ? 'no fitting key was found in the data folder' : 'it is MUSTER_SECRET_KEY'
  return `The file does not contain the secret key (${where}): to restore it, set MUSTER_SECRET_KEY.`
}

export async function restoreCommand(config: Config, file: string, terminal: Terminal): Promise<void> {
  const startedAt = performance.now()
  await untilInterrupted(async (signal) => {
    terminal.progress('Checking the backup')
    const backup = await openBackup(resolve(file))
    try {
      const summary = await restoreInto(config, backup, resolve(file), signal, (sentence) =>
        terminal.progress(sentence),
      )
      const { manifest } = backup
      terminal.print(
        `Restored ${contents(summary)} from ${file} (Muster ${manifest.muster_version}, ${manifest.created_at}), in ${since(startedAt)}.`,
      )
      for (const note of restoreNotes(config, backup, summary)) terminal.print(note)
    } finally {
      await backup.close()
    }
  })
}

/** All checks that can refuse a restore come before the first change. */
async function restoreInto(
  config: Config,
  backup: OpenBackup,
  file: string,
  signal: AbortSignal,
  onProgress: (sentence: string) => void,
): Promise<RestoreSummary> {
  const migrations = await loadMigrations(migrationsFolder)
  migrationsOf(backup.manifest, migrations)
  if (config.databaseUrl === null) await requireEmptyFolder(config.dataDir, file)
  const secrets = await planSecrets(config, backup)
  signal.throwIfAborted()
  const claim = await claimDataFolder(config.dataDir)
  try {
    const database = await openDatabase(config, silentLog, onProgress)
    try {
      const { url } = database
      // Secrets come before the commit: rows without their key would be lost, a key without rows does little harm.
      const beforeCommit = (): Promise<void> => writeSecrets(secrets)
      const summary = await restoreBackup({ url, backup, migrations, beforeCommit, onProgress, signal, log: silentLog })
      await migrateOn(url, onProgress)
      return summary
    } finally {
      await database.stop()
    }
  } finally {
    await claim.release()
  }
}

async function migrateOn(url: string, onProgress: (sentence: string) => void): Promise<void> {
  try {
    await migrateDatabase(url, silentLog, onProgress)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`The backup is restored, but not brought to this release: ${reason}`, { cause: error })
  }
}

/** Remains of a failed restore do not count. If the folder has a database, the database itself is asked for rows. */
async function requireEmptyFolder(dataDir: string, file: string): Promise<void> {
  const names = await readdir(dataDir).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return []
    throw new Error(`The data folder ${dataDir} cannot be read: ${error instanceof Error ? error.message : error}.`)
  })
  const own =
    /^(muster\.(lock|pid|claim|address)|postgres$|postgres\.|postgresql-|secret\.key$|admin\.token$|lost\+found$)/
  const other = names.find((name) => !own.test(name) && join(dataDir, name) !== file)
  if (other !== undefined) {
    throw new Error(`The data folder ${dataDir} is not empty (it has ${other}): restore into an empty one.`)
  }
}

function restoreNotes(config: Config, backup: OpenBackup, { leftOut }: RestoreSummary): string[] {
  const notes: string[] = []
  if (leftOut.length > 0) notes.push(`Not restored, because no migration of Muster makes them: ${leftOut.join(', ')}.`)
  if (config.adminToken === null && !holdsAdminToken(backup.secrets)) {
    notes.push('The admin token is not in the backup: if the data folder has none, the next start makes a new one.')
  }
  const key = config.secretKey === null ? '' : ', with the same MUSTER_SECRET_KEY'
  const folder = config.dataDir === resolve('.muster') ? '' : ` -- --data-dir ${config.dataDir}`
  const url = config.databaseUrl === null ? '' : ', with the same DATABASE_URL'
  notes.push(`Next: npm start${folder}${url}${key}`)
  return notes
}

const contents = ({ rows, tables }: { rows: number; tables: number }): string =>
  `${rows.toLocaleString('en')} rows of ${tables} tables`

const since = (startedAt: number): string => `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`

function sizeOf(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.max(1, Math.round(bytes / 1_000))} kB`
  return bytes < 1_000_000_000 ? `${(bytes / 1_000_000).toFixed(1)} MB` : `${(bytes / 1_000_000_000).toFixed(2)} GB`
}
