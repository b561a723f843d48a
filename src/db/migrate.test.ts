import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createEmptyDatabase, migrationsFolder } from '../../test/kit/database.ts'
import { withClient } from '../../test/kit/test-server.ts'
import { silentLog } from '../kernel/log.ts'
import { loadMigrations, type Migration, migrate, schemaVersion } from './migrate.ts'

const made = (version: number, sql: string, breaking = false): Migration => ({
  version,
  name: `${String(version).padStart(4, '0')}_test`,
  sql,
  checksum: `checksum of ${sql}`,
  breaking,
})

const run = (url: string, migrations: readonly Migration[]) => migrate({ url, migrations, log: silentLog })

const ledger = (url: string) =>
  withClient(url, async (client) => {
    const { rows } = await client.query<{ version: number }>('select version from muster.migrations order by version')
    return rows.map((row) => row.version)
  })

test('a fresh database gets every migration once, and a second run does nothing', async () => {
  const url = await createEmptyDatabase()
  const migrations = await loadMigrations(migrationsFolder)
  assert.equal(await withClient(url, (client) => schemaVersion(client as never)), 0)
  assert.equal(await run(url, migrations), migrations.length)
  assert.equal(await run(url, migrations), 0)
  assert.equal(await withClient(url, (client) => schemaVersion(client as never)), migrations.length)
})

test('five that start at once migrate once', async () => {
  const url = await createEmptyDatabase()
  const migrations = [
    made(1, 'create table counted (n int); insert into counted values (1); select pg_sleep(0.2)'),
    made(2, 'insert into counted values (2)'),
  ]
  const applied = await Promise.all(Array.from({ length: 5 }, () => run(url, migrations)))
  assert.deepEqual(applied.toSorted(), [0, 0, 0, 0, 2])
  const rows = await withClient(url, (client) => client.query('select n from counted order by n'))
  assert.deepEqual(rows.rows, [{ n: 1 }, { n: 2 }])
})

test('a migration that fails leaves nothing of itself and can be tried again', async () => {
  const url = await createEmptyDatabase()
  const good = made(1, 'create table kept (n int)')
  const bad = made(2, 'create table half (n int); select 1/0')
  await assert.rejects(run(url, [good, bad]), /Migration 0002_test failed: division by zero/)
  assert.deepEqual(await ledger(url), [1])
  const half = await withClient(url, (client) => client.query(`select to_regclass('half') as found`))
  assert.equal(half.rows[0].found, null)
  assert.equal(await run(url, [good, made(2, 'create table half (n int)')]), 1)
})

test('a migration that was edited after it was applied is refused', async () => {
  const url = await createEmptyDatabase()
  await run(url, [made(1, 'select 1')])
  await assert.rejects(run(url, [made(1, 'select 2')]), /0001_test is not the one this database was made with/)
})

test('a newer schema is served when it is not breaking and refused when it is', async () => {
  const url = await createEmptyDatabase()
  const old = [made(1, 'select 1')]
  await run(url, [...old, made(2, 'create table newer (n int)')])
  assert.equal(await run(url, old), 0)
  await run(url, [...old, made(2, 'create table newer (n int)'), made(3, 'drop table newer', true)])
  await assert.rejects(run(url, old), /changed by a newer Muster.*0003_test.*Start the newer release/)
})

test('files are read in order; a gap, a wrong name or a marked one is noticed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-migrations-'))
  try {
    await writeFile(join(folder, '0001_first.sql'), 'select 1;')
    await writeFile(join(folder, '0002_second.sql'), '-- breaking: drops what 0.1 reads\nselect 2;')
    await writeFile(join(folder, 'README.md'), 'not a migration')
    const read = await loadMigrations(folder)
    assert.deepEqual(
      read.map(({ version, name, breaking }) => [version, name, breaking]),
      [
        [1, '0001_first', false],
        [2, '0002_second', true],
      ],
    )
    await writeFile(join(folder, '0004_gap.sql'), 'select 4;')
    await assert.rejects(loadMigrations(folder), /0004_gap.sql is misnamed or out of order/)
  } finally {
    await rm(folder, { recursive: true })
  }
})
