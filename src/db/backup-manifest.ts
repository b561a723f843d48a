// The manifest of a backup. The file is a .tar.gz: a marker that tells a backup from any other archive, the tables in
// parts, the secrets, and last the manifest, because its contents are known only then. A part holds whole rows in
// PostgreSQL's COPY text format, which people and psql can read.
import { z } from 'zod'
import type { Migration } from './migrate.ts'

export const formatVersion = 1
export const markerName = 'muster-backup.json'
export const manifestName = 'manifest.json'
export const secretMember = (name: string): string => `secrets/${name}`

export const markerSchema = z.object({
  format: z.literal('muster-backup'),
  version: z.int().positive(),
  muster_version: z.string(),
  created_at: z.string(),
})

const count = z.int().nonnegative()
const memberSchema = z.object({ name: z.string().min(1), size: count, sha256: z.string().regex(/^[0-9a-f]{64}$/) })
const migrationSchema = z.object({
  version: z.int().positive(),
  name: z.string(),
  checksum: z.string(),
  breaking: z.boolean(),
  applied_at: z.string(),
})
const tableSchema = z.object({
  schema: z.string().min(1),
  name: z.string().min(1),
  columns: z.array(z.string()).min(1),
  rows: count,
  parts: z.array(memberSchema),
})
const sequenceSchema = z.object({
  schema: z.string().min(1),
  name: z.string().min(1),
  last_value: z.string().regex(/^-?\d+$/),
  is_called: z.boolean(),
})

export const manifestSchema = z.object({
  format_version: z.literal(formatVersion),
  muster_version: z.string(),
  postgres_version: z.string(),
  created_at: z.string(),
  /** The fingerprint of the key that seals the database's secrets; null if no server ever ran on the database. */
  key_fingerprint: z.string().nullable(),
  migrations: z.array(migrationSchema).min(1),
  tables: z.array(tableSchema),
  sequences: z.array(sequenceSchema),
  secrets: z.array(memberSchema),
})

export type ArchiveMember = z.infer<typeof memberSchema>
export type BackupTable = z.infer<typeof tableSchema>
export type BackupSequence = z.infer<typeof sequenceSchema>
export type AppliedMigration = z.infer<typeof migrationSchema>
export type Manifest = z.infer<typeof manifestSchema>

export const countRows = (manifest: Manifest): number => manifest.tables.reduce((sum, table) => sum + table.rows, 0)

/** The migrations that make the backup's schema. Throws if this release cannot make that schema. */
export function migrationsOf(manifest: Manifest, known: readonly Migration[]): Migration[] {
  const byVersion = new Map(known.map((migration) => [migration.version, migration]))
  return manifest.migrations.map((applied) => {
    const migration = byVersion.get(applied.version)
    if (!migration) {
      throw new Error(
        `The backup was made by a newer Muster (${manifest.muster_version}, with ${applied.name}): restore it with that release.`,
      )
    }
    if (migration.checksum !== applied.checksum) {
      throw new Error(
        `The backup was made by a Muster (${manifest.muster_version}) with a different ${applied.name}: restore it with that release.`,
      )
    }
    return migration
  })
}
