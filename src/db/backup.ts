// `muster backup`: everything a database holds, in one file, from one snapshot, while others go on writing. The npm
// packages of PostgreSQL hold no pg_dump, and a managed database is of any version, so a backup uses only COPY. The
// schema is not in the file: the migrations named in the manifest make it. open-backup and restore are the way back.
import type pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { type ArchiveWriter, createArchive } from './backup-archive.ts'
import { type CatalogTable, listSequences, listTables, plainName, quoted, quotedColumns } from './backup-catalog.ts'
import {
  type AppliedMigration,
  type ArchiveMember,
  type BackupSequence,
  type BackupTable,
  countRows,
  formatVersion,
  type Manifest,
  manifestName,
  markerName,
  secretMember,
} from './backup-manifest.ts'
import { withSession } from './backup-session.ts'
import { pgFailure } from './failures.ts'
import { commit } from './transaction.ts'

export interface BackupOptions {
  url: string
  /** The path of the new backup; no file may exist there. */
  file: string
  musterVersion: string
  keyFingerprint: string | null
  /** The secrets, by the name of their file in the data folder. */
  secrets: ReadonlyMap<string, string>
  signal: AbortSignal
}

export interface BackupSummary {
  tables: number
  rows: number
  bytes: number
  /** Tables of other owners in the same database. */
  leftOut: string[]
}

/** Small enough for memory to hold a few parts, large enough to make the cost of gzip and tar per part negligible. */
const PART_BYTES = 4 * 1024 * 1024
const NEWLINE = 0x0a

export async function writeBackup(options: BackupOptions): Promise<BackupSummary> {
  const archive = await createArchive(options.file)
  try {
    return await withSession(options.url, options.signal, async (client) => {
      const { tables, leftOut } = await openSnapshot(client)
      const manifest = await writeMembers(client, archive, tables, options)
      await commit(client)
      const bytes = await archive.publish()
      return { tables: manifest.tables.length, rows: countRows(manifest), bytes, leftOut }
    })
  } finally {
    await archive.discard()
  }
}

/** Locks come before the snapshot: a table that a migration rewrites after a snapshot looks empty in it. */
async function openSnapshot(client: pg.Client): Promise<{ tables: CatalogTable[]; leftOut: string[] }> {
  const { rows } = await client.query<{ ledger: string | null }>(`select to_regclass('muster.migrations') as ledger`)
  if (rows[0]?.ledger == null) throw nothingToBackUp()
  const before = (await listTables(client)).filter((table) => table.isOurs)
  await client.query('begin isolation level repeatable read read only')
  try {
    await client.query(`lock table ${['muster.migrations', ...before.map(quoted)].join(', ')} in access share mode`)
  } catch (error) {
    if (pgFailure(error)?.code === '55P03' || pgFailure(error)?.code === '42P01') throw beingChanged(error)
    throw error
  }
  const all = await listTables(client)
  const tables = all.filter((table) => table.isOurs)
  if (JSON.stringify(tables) !== JSON.stringify(before)) throw beingChanged()
  return { tables, leftOut: all.filter((table) => !table.isOurs).map(plainName) }
}

async function writeMembers(
  client: pg.Client,
  archive: ArchiveWriter,
  tables: readonly CatalogTable[],
  options: BackupOptions,
): Promise<Manifest> {
  const facts = await readFacts(client)
  const migrations = await readMigrations(client)
  if (migrations.length === 0) throw nothingToBackUp()
  const made = { muster_version: options.musterVersion, created_at: facts.created_at }
  await archive.add(markerName, toJson({ format: 'muster-backup', version: formatVersion, ...made }))
  const copied: BackupTable[] = []
  for (const table of tables) copied.push(await copyTable(client, archive, table))
  const secrets: ArchiveMember[] = []
  for (const [name, text] of options.secrets) secrets.push(await archive.add(secretMember(name), Buffer.from(text)))
  const manifest: Manifest = {
    format_version: formatVersion,
    ...made,
    postgres_version: facts.postgres_version,
    key_fingerprint: options.keyFingerprint,
    migrations,
    tables: copied,
    // Sequences are read after the rows: a sequence is outside the snapshot, and must be ahead of every row in it.
    sequences: await readSequences(client),
    secrets,
  }
  await archive.add(manifestName, toJson(manifest))
  return manifest
}

async function copyTable(client: pg.Client, archive: ArchiveWriter, table: CatalogTable): Promise<BackupTable> {
  const parts: ArchiveMember[] = []
  const folder = `tables/${encodeURIComponent(table.schema)}.${encodeURIComponent(table.name)}`
  const add = async (body: Buffer): Promise<void> => {
    parts.push(await archive.add(`${folder}/${String(parts.length + 1).padStart(6, '0')}.copy`, body))
  }
  const copy = client.query(copyTo(`copy ${quoted(table)} (${quotedColumns(table.columns)}) to stdout`))
  let held: Buffer[] = []
  let size = 0
  for await (const chunk of copy as AsyncIterable<Buffer>) {
    let rest = chunk
    for (;;) {
      // COPY writes a line end inside a value as \n, so a plain line end ends a row. The same rows make the same parts.
      const end = size + rest.length < PART_BYTES ? -1 : rest.indexOf(NEWLINE, Math.max(0, PART_BYTES - 1 - size))
      if (end === -1) break
      await add(Buffer.concat([...held, rest.subarray(0, end + 1)]))
      rest = rest.subarray(end + 1)
      held = []
      size = 0
    }
    held.push(rest)
    size += rest.length
  }
  if (size > 0) await add(Buffer.concat(held))
  // The row count arrives after the last row; the answer to another query comes after both.
  await client.query('select')
  return { schema: table.schema, name: table.name, columns: table.columns, rows: copy.rowCount, parts }
}

async function readFacts(client: pg.Client): Promise<Pick<Manifest, 'postgres_version' | 'created_at'>> {
  const { rows } = await client.query<Pick<Manifest, 'postgres_version' | 'created_at'>>(
    `select current_setting('server_version') as postgres_version, to_json(now())::jsonb #>> '{}' as created_at`,
  )
  const facts = rows[0]
  if (!facts) throw new Error('the server did not say which version it is')
  return facts
}

async function readMigrations(client: pg.Client): Promise<AppliedMigration[]> {
  const { rows } = await client.query<AppliedMigration>(
    `select version, name, checksum, breaking, to_json(applied_at)::jsonb #>> '{}' as applied_at
     from muster.migrations order by version`,
  )
  return rows
}

async function readSequences(client: pg.Client): Promise<BackupSequence[]> {
  const found: BackupSequence[] = []
  for (const { schema, name } of await listSequences(client)) {
    const { rows } = await client.query<{ last_value: string; is_called: boolean }>(
      `select last_value::text as last_value, is_called from ${quoted({ schema, name })}`,
    )
    if (rows[0]) found.push({ schema, name, ...rows[0] })
  }
  return found
}

const toJson = (value: object): Buffer => Buffer.from(`${JSON.stringify(value, null, 2)}\n`)

const nothingToBackUp = (): Error => new Error('There is nothing to back up: no Muster ever ran on this database.')
const beingChanged = (cause?: unknown): Error =>
  new Error('The tables are being changed by a migration: try again when it is over.', { cause })
