import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createEmptyDatabase, migrationsFolder } from '../../test/kit/database.ts'
import { withClient } from '../../test/kit/test-server.ts'
import { silentLog } from '../kernel/log.ts'
import { withinTransaction } from './concurrent-indexes.ts'
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

const indexes = (url: string) =>
  withClient(url, async (client) => {
    const { rows } = await client.query(
      `select c.relname as name, i.indisvalid as valid from pg_index i join pg_class c on c.oid = i.indexrelid
       where c.relnamespace = 'public'::regnamespace order by 1`,
    )
    return rows
  })

test('a fresh database gets every migration once, and a second run does nothing', async () => {
  const url = await createEmptyDatabase()
  const migrations = await loadMigrations(migrationsFolder)
  assert.equal(await withClient(url, (client) => schemaVersion(client as never)), 0)
  assert.equal(await run(url, migrations), migrations.length)
  assert.equal(await run(url, migrations), 0)
  assert.equal(await withClient(url, (client) => schemaVersion(client as never)), migrations.length)
})

test('five servers that start at once migrate once', async () => {
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

test('a migration that waits for a table lets others pass, and gets its turn', async () => {
  const url = await createEmptyDatabase()
  const first = made(1, 'create table busy (n int)')
  await run(url, [first])
  await withClient(url, async (reader) => {
    await reader.query('begin')
    await reader.query('select from busy')
    const waits = Promise.withResolvers<void>()
    const migrating = migrate({
      url,
      migrations: [first, made(2, 'alter table busy add column m int')],
      log: silentLog,
      lockTimeoutMs: 100,
      onProgress: (sentence) => sentence.includes('waits for a table') && waits.resolve(),
    })
    await Promise.race([waits.promise, migrating])
    await withClient(url, async (writer) => {
      await writer.query(`set statement_timeout = '5s'`)
      for (let n = 1; n <= 50; n++) await writer.query('insert into busy (n) values ($1)', [n])
    })
    await reader.query('commit')
    assert.equal(await migrating, 1)
  })
  const { rows } = await withClient(url, (client) => client.query('select count(n)::int as n, max(m) as m from busy'))
  assert.deepEqual(rows, [{ n: 50, m: null }])
})

test('a migration that never gets its table says what to do', async () => {
  const url = await createEmptyDatabase()
  const first = made(1, 'create table busy (n int)')
  await run(url, [first])
  await withClient(url, async (reader) => {
    await reader.query('begin')
    await reader.query('select from busy')
    const migrations = [first, made(2, 'drop table busy')]
    const migrating = migrate({ url, migrations, log: silentLog, lockTimeoutMs: 20, patienceMs: 100 })
    await assert.rejects(
      migrating,
      /Migration 0002_test failed: a long transaction holds a table that the migration must change\./,
    )
  })
  assert.deepEqual(await ledger(url), [1])
})

test('an index is made concurrently and once, however many servers start at once', async () => {
  const url = await createEmptyDatabase()
  const migrations = [
    made(1, 'create table large as select n, n % 7 as m from generate_series(1, 20000) n'),
    made(
      2,
      '-- no transaction\ncreate index concurrently large_m on large (m);\ncreate index concurrently large_n on large (n);',
    ),
    made(3, '-- no transaction\ndrop index concurrently if exists large_m;'),
  ]
  const applied = await Promise.all(Array.from({ length: 5 }, () => run(url, migrations)))
  assert.deepEqual(applied.toSorted(), [0, 0, 0, 0, 3])
  assert.deepEqual(await indexes(url), [{ name: 'large_n', valid: true }])
})

test('an index that was left invalid half-way is made anew by the next start', async () => {
  const url = await createEmptyDatabase()
  const table = made(1, 'create table doubled (n int, m int); insert into doubled values (1, 1), (1, 2)')
  const index = made(
    2,
    '-- no transaction\ncreate index concurrently doubled_m on doubled (m);\ncreate unique index concurrently doubled_n on doubled (n)',
  )
  await assert.rejects(run(url, [table, index]), /Migration 0002_test failed: could not create unique index/)
  assert.deepEqual(await indexes(url), [
    { name: 'doubled_m', valid: true },
    { name: 'doubled_n', valid: false },
  ])
  assert.deepEqual(await ledger(url), [1])
  await withClient(url, (client) => client.query('delete from doubled where m = 2'))
  assert.equal(await run(url, [table, index]), 1)
  assert.deepEqual(await indexes(url), [
    { name: 'doubled_m', valid: true },
    { name: 'doubled_n', valid: true },
  ])
})

test('a restore makes the same indexes within its transaction', () => {
  const sql = '-- no transaction\ncreate index concurrently one on two (n);\ndrop index concurrently if exists three;'
  assert.equal(withinTransaction(sql), '-- no transaction\ncreate index one on two (n);\ndrop index if exists three;')
  assert.equal(withinTransaction('select 1'), 'select 1')
})

test('files are read in order, and a gap, a wrong name or a mark is noticed', async () => {
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
    await writeFile(join(folder, '0003_half.sql'), '-- no transaction\ncreate table half (n int);')
    await assert.rejects(
      loadMigrations(folder),
      /0003_half.sql has no transaction, so it may only make and drop indexes/,
    )
    await rm(join(folder, '0003_half.sql'))
    await writeFile(join(folder, '0004_gap.sql'), 'select 4;')
    await assert.rejects(loadMigrations(folder), /0004_gap.sql is misnamed or out of order/)
  } finally {
    await rm(folder, { recursive: true })
  }
})
