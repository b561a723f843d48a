// `muster restore`: the migrations make the tables, and the backup fills them, in one transaction, so a restore that
// fails leaves the database empty. It needs no superuser: foreign keys are dropped and added again, which checks them,
// and the tables' owner disables their triggers meanwhile.
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import type { Log } from '../kernel/log.ts'
import {
  type CatalogTable,
  listForeignKeys,
  listRelationIds,
  listSequences,
  listTables,
  listTriggers,
  plainName,
  quoted,
  quotedColumns,
} from './backup-catalog.ts'
import { type BackupTable, countRows, type Manifest, migrationsOf } from './backup-manifest.ts'
import { withSession } from './backup-session.ts'
import { withinTransaction } from './concurrent-indexes.ts'
import { pgFailure } from './failures.ts'
import { type Migration, migrate } from './migrate.ts'
import type { OpenBackup } from './open-backup.ts'
import type { Db } from './pool.ts'
import { commit } from './transaction.ts'

export interface RestoreOptions {
  url: string
  backup: OpenBackup
  /** All migrations of this release. The database is brought to the backup's version, not further. */
  migrations: readonly Migration[]
  /** Schemas that a library makes with its own migrations. Their tables are filled like Muster's. */
  libraries?: readonly Library[]
  /** Called when every row is in place and checked; if it throws, nothing was restored. */
  beforeCommit?: () => Promise<void>
  onProgress?: (sentence: string) => void
  signal: AbortSignal
  log: Log
}

interface Library {
  schema: string
  /** Called before each attempt, so it must allow repeated calls. */
  install: (url: string) => Promise<void>
}

export interface RestoreSummary {
  tables: number
  rows: number
  /** Tables of the backup that no migration makes: another application's, owned by the same role. */
  leftOut: string[]
}

interface Target {
  /** The oids of tables that existed before the restore; they must not be touched. */
  foreign: readonly number[]
  tables: Map<string, { table: CatalogTable; backup: BackupTable }>
  leftOut: string[]
}

const ALREADY_EXISTS = new Set(['42P06', '42P07', '42710', '42723'])

export async function restoreBackup(options: RestoreOptions): Promise<RestoreSummary> {
  const { url, backup, signal, log, libraries = [], onProgress = () => {} } = options
  const { manifest } = backup
  const migrations = migrationsOf(manifest, options.migrations)
  return withSession(url, signal, async (client) => {
    await requireEmpty(client, libraries)
    await migrate({ url, migrations: [], log }) // checks the server's version and makes the ledger
    for (const library of libraries) await library.install(url)
    await client.query('begin isolation level read committed')
    onProgress('Making the tables')
    const target = await makeTables(client, manifest, migrations, libraries)
    const putBack = await clearTheWay(client, target)
    onProgress(`Loading ${countRows(manifest)} rows`)
    await load(client, backup, target)
    await setSequences(client, manifest, target)
    onProgress('Checking the references between rows')
    await putBack()
    await writeLedger(client, manifest)
    await options.beforeCommit?.()
    await commit(client)
    const restored = [...target.tables.values()].map((entry) => entry.backup)
    const rows = restored.reduce((sum, table) => sum + table.rows, 0)
    return { tables: restored.length, rows, leftOut: target.leftOut }
  })
}

/** A migrated database counts as in use. Throws one sentence before anything is changed. */
async function requireEmpty(client: pg.Client, libraries: readonly Library[]): Promise<void> {
  if (await hasRows(client, 'muster.migrations')) {
    throw notEmpty('Muster has run on it')
  }
  for (const table of await listTables(client)) {
    if (!libraries.some(({ schema }) => schema === table.schema)) continue
    if (await hasRows(client, quoted(table))) throw notEmpty(`${plainName(table)} has rows`)
  }
}

async function hasRows(db: Db, table: string): Promise<boolean> {
  const there = await db.query<{ found: boolean }>('select to_regclass($1) is not null as found', [table])
  if (!there.rows[0]?.found) return false
  const { rows } = await db.query<{ found: boolean }>(`select exists (select from ${table}) as found`)
  return rows[0]?.found === true
}

async function makeTables(
  client: pg.Client,
  manifest: Manifest,
  migrations: readonly Migration[],
  libraries: readonly Library[],
): Promise<Target> {
  // A server that starts on the same database now waits for this lock, and then finds the database restored.
  await client.query('lock table muster.migrations in access exclusive mode')
  if (await hasRows(client, 'muster.migrations')) throw notEmpty('a server has just begun to use it')
  const schemas = new Set(libraries.map(({ schema }) => schema))
  const foreign = (await listRelationIds(client)).filter(({ schema }) => !schemas.has(schema)).map(({ oid }) => oid)
  for (const { name, sql } of migrations) {
    try {
      await client.query(withinTransaction(sql))
      await client.query('set constraints all immediate')
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      if (ALREADY_EXISTS.has(pgFailure(error)?.code ?? '')) throw notEmpty(message)
      throw new Error(`Migration ${name} failed: ${message}`, { cause: error })
    }
  }
  const made = (await listTables(client)).filter(({ oid }) => !foreign.includes(oid))
  return { foreign, ...match(made, manifest, schemas) }
}

/** Every table of Muster must be in the backup: a missing table means that rows were lost before it was made. */
function match(
  made: readonly CatalogTable[],
  manifest: Manifest,
  librarySchemas: ReadonlySet<string>,
): Pick<Target, 'tables' | 'leftOut'> {
  const byName = new Map(made.map((table) => [plainName(table), table]))
  const tables: Target['tables'] = new Map()
  const leftOut: string[] = []
  for (const backup of manifest.tables) {
    const table = byName.get(plainName(backup))
    if (!table) {
      leftOut.push(plainName(backup))
      continue
    }
    const missing = backup.columns.find((column) => !table.columns.includes(column))
    if (missing !== undefined) throw new Error(`${plainName(table)} has no column ${missing}, which the backup holds.`)
    tables.set(plainName(table), { table, backup })
  }
  for (const table of made) {
    if (tables.has(plainName(table)) || librarySchemas.has(table.schema)) continue
    throw new Error(`The backup is incomplete: the table ${plainName(table)} is not in it.`)
  }
  return { tables, leftOut }
}

/** Drops foreign keys, disables triggers and deletes rows of migrations (the backup has them). Returns the way back. */
async function clearTheWay(client: pg.Client, { foreign, tables }: Target): Promise<() => Promise<void>> {
  const triggers = await listTriggers(client, foreign)
  const foreignKeys = await listForeignKeys(client, foreign)
  const alter = (at: { schema: string; name: string }, change: string): Promise<unknown> =>
    client.query(`alter table ${quoted(at)} ${change}`)
  for (const trigger of triggers) await alter(trigger, `disable trigger ${escaped(trigger.trigger)}`)
  for (const key of foreignKeys) await alter(key, `drop constraint ${escaped(key.constraint)}`)
  for (const { table } of tables.values()) await client.query(`delete from only ${quoted(table)}`)
  return async () => {
    // A constraint check that is deferred to the commit would keep the tables from being altered.
    await client.query('set constraints all immediate')
    for (const key of foreignKeys) await alter(key, `add constraint ${escaped(key.constraint)} ${key.definition}`)
    for (const trigger of triggers) await alter(trigger, `${trigger.mode} trigger ${escaped(trigger.trigger)}`)
    const names = [...tables.values()].map(({ table }) => quoted(table))
    if (names.length > 0) await client.query(`analyze ${names.join(', ')}`)
  }
}

async function load(client: pg.Client, backup: OpenBackup, { tables }: Target): Promise<void> {
  const byPart = new Map(
    [...tables.values()].flatMap((entry) => entry.backup.parts.map(({ name }) => [name, entry.backup] as const)),
  )
  const loaded = new Map<BackupTable, number>()
  for await (const { name, body } of backup.readParts()) {
    const table = byPart.get(name)
    if (!table) continue
    loaded.set(table, (loaded.get(table) ?? 0) + (await copyPart(client, table, body)))
  }
  for (const { backup: table } of tables.values()) {
    const rows = loaded.get(table) ?? 0
    if (rows !== table.rows) {
      throw new Error(`${plainName(table)} has ${rows} rows instead of the ${table.rows} that the backup promises.`)
    }
  }
}

async function copyPart(client: pg.Client, table: BackupTable, body: Buffer): Promise<number> {
  const copy = client.query(copyFrom(`copy ${quoted(table)} (${quotedColumns(table.columns)}) from stdin`))
  await new Promise<void>((resolve, reject) => {
    copy.once('finish', resolve)
    copy.once('error', reject)
    copy.end(body)
  }).catch((error: Error) => {
    throw new Error(`${plainName(table)} cannot be filled: ${error.message}.`, { cause: error })
  })
  return copy.rowCount
}

/** A sequence goes to its saved value, or above every row with a higher number: no number may be given out twice. */
async function setSequences(client: pg.Client, manifest: Manifest, { foreign }: Target): Promise<void> {
  const saved = new Map(manifest.sequences.map((sequence) => [plainName(sequence), sequence]))
  for (const sequence of await listSequences(client)) {
    const state = saved.get(plainName(sequence))
    if (!state || foreign.includes(sequence.oid)) continue
    const { feeds } = sequence
    const highest = feeds ? `select max(${escaped(feeds.column)})::bigint from ${quoted(feeds)}` : 'select null::bigint'
    await client.query(
      `select setval($1::regclass, greatest($2::bigint, highest.value), $3 or highest.value >= $2::bigint is true)
       from (${highest}) as highest (value)`,
      [quoted(sequence), state.last_value, state.is_called],
    )
  }
}

async function writeLedger(client: pg.Client, manifest: Manifest): Promise<void> {
  for (const { version, name, checksum, breaking, applied_at } of manifest.migrations) {
    await client.query(
      'insert into muster.migrations (version, name, checksum, breaking, applied_at) values ($1, $2, $3, $4, $5)',
      [version, name, checksum, breaking, applied_at],
    )
  }
}

const escaped = (name: string): string => `"${name.replaceAll('"', '""')}"`

const notEmpty = (why: string): Error =>
  new Error(`The database is not empty (${why}): restore into an empty data folder or database.`)
