import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  backUp,
  createMigrated,
  describe,
  dump,
  makeBackupFolder,
  never,
  released,
  restore,
  run,
  withMigrations,
} from '../../test/kit/backups.ts'
import { createEmptyDatabase } from '../../test/kit/database.ts'
import { testServerUrl } from '../../test/kit/server.ts'
import { silentLog } from '../kernel/log.ts'
import { migrate } from './migrate.ts'
import { openBackup } from './open-backup.ts'
import { restoreBackup } from './restore.ts'

/** References in every direction, partitions, and triggers that would spoil a load. */
const TANGLE = `
  create table tree (id integer primary key, parent integer references tree, note text);
  create table a_chicken (id integer primary key, egg integer not null);
  create table b_egg (id integer primary key, chicken integer not null references a_chicken deferrable initially deferred);
  alter table a_chicken add constraint "from ""egg" foreign key (egg) references b_egg deferrable initially deferred;
  create table days (day date, n integer, tree integer references tree, primary key (day, n)) partition by range (day);
  create table days_2030 partition of days for values from ('2030-01-01') to ('2031-01-01');
  create table days_2031 partition of days for values from ('2031-01-01') to ('2032-01-01');
  create table ranked (id integer primary key, rank integer unique deferrable initially deferred);
  insert into tree values (1, null, 'made by the migration'), (2, 1, 'so was this');
  create function spoil() returns trigger language plpgsql as $$ begin new.note = 'spoilt'; return new; end $$;
  create trigger spoil before insert on tree for each row execute function spoil();
  create trigger always_spoil before insert on tree for each row execute function spoil();
  create trigger never_spoil before insert on tree for each row execute function spoil();
  alter table tree enable always trigger always_spoil;
  alter table tree disable trigger never_spoil`

test('references in circles, partitions, triggers and rows of migrations come back as they were', async (t) => {
  const file = join(await makeBackupFolder(t), 'tangle.tar.gz')
  const migrations = withMigrations(TANGLE)
  const source = await createMigrated(migrations)
  await run(
    source,
    `update tree set note = 'changed since' where id = 1`,
    'delete from tree where id = 2',
    `set session_replication_role = replica; alter table tree disable trigger always_spoil;
     insert into tree values (30, 31, 'down'), (31, 30, 'up'), (32, 32, 'itself');
     alter table tree enable always trigger always_spoil; set session_replication_role = default`,
    'begin; insert into a_chicken values (1, 2); insert into b_egg values (2, 1); commit',
    `insert into days values ('2030-05-05', 1, 30), ('2031-06-06', 2, 31)`,
    'insert into ranked values (1, 2), (2, 1)',
  )
  const { rows } = await backUp(source, file)
  assert.equal(rows, 10)
  const target = await createEmptyDatabase()
  await restore(target, file, { migrations })
  assert.deepEqual(await dump(target), await dump(source))
  assert.deepEqual(await describe(target), await describe(source))
  await assert.rejects(run(target, 'insert into tree values (40, 99)'), /foreign key/)
  await assert.rejects(run(target, 'insert into a_chicken values (5, 99)'), /foreign key/)
  await assert.rejects(run(target, `insert into days values ('2030-05-05', 7, 99)`), /foreign key/)
})

test('an older backup is restored at its version and migrated on, a newer one is refused', async (t) => {
  const folder = await makeBackupFolder(t)
  const newer = withMigrations(
    `create table later (id integer primary key); alter table projects add column later integer`,
  )
  const source = await createMigrated()
  await run(source, `insert into projects (id, name) values (gen_random_uuid(), 'Old')`)
  await backUp(source, join(folder, 'older.tar.gz'))
  const target = await createEmptyDatabase()
  await restore(target, join(folder, 'older.tar.gz'), { migrations: newer })
  assert.deepEqual(await run(target, 'select count(*) from muster.migrations'), [{ count: released.length }])
  assert.equal(await migrate({ url: target, migrations: newer, log: silentLog }), 1)
  assert.deepEqual(await run(target, 'select name, later from projects'), [{ name: 'Old', later: null }])

  await backUp(await createMigrated(newer), join(folder, 'newer.tar.gz'))
  const empty = await createEmptyDatabase()
  await assert.rejects(
    restore(empty, join(folder, 'newer.tar.gz')),
    /made by a newer Muster \(0\.1\.0, with .*_of_a_test\)/,
  )
  const changed = released.map((migration) => ({ ...migration, checksum: 'another' }))
  await assert.rejects(
    restore(empty, join(folder, 'older.tar.gz'), { migrations: changed }),
    /with a different 0001_foundation:/,
  )
  assert.deepEqual(await tablesOf(empty), [])
})

test('a database in use is refused and stays as it is', async (t) => {
  const file = join(await makeBackupFolder(t), 'one.tar.gz')
  const source = await createMigrated()
  await backUp(source, file)
  const inUse = await createMigrated()
  await run(inUse, `insert into projects (id, name) values (gen_random_uuid(), 'Mine')`)
  const before = await dump(inUse)
  await assert.rejects(restore(inUse, file), /^Error: The database is not empty \(Muster has run on it\): restore into/)
  assert.deepEqual(await dump(inUse), before)

  const shared = await createEmptyDatabase()
  await run(shared, 'create table projects (mine text)', `insert into projects values ('of another program')`)
  await assert.rejects(restore(shared, file), /not empty \(relation "projects" already exists\)/)
  assert.deepEqual(await run(shared, 'select * from projects'), [{ mine: 'of another program' }])
})

test('a restore that fails at any step leaves nothing, and the next try works', async (t) => {
  const file = join(await makeBackupFolder(t), 'retry.tar.gz')
  const migrations = withMigrations(TANGLE)
  const source = await createMigrated(migrations)
  await run(source, `set session_replication_role = replica; insert into tree values (7, 8, 'refers to nobody')`)
  const broken = join(await makeBackupFolder(t), 'broken.tar.gz')
  await backUp(source, broken)
  await run(source, 'delete from tree where id = 7')
  await backUp(source, file)
  const target = await createEmptyDatabase()
  await assert.rejects(restore(target, broken, { migrations }), /violates foreign key constraint "tree_parent_fkey"/)
  assert.deepEqual(await tablesOf(target), ['muster.migrations'])
  const failing = async (): Promise<void> => {
    throw new Error('the secrets could not be written')
  }
  await assert.rejects(restore(target, file, { migrations, beforeCommit: failing }), /secrets could not be written/)

  const backup = await openBackup(file)
  const cut = (): Promise<void> =>
    run(
      target,
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'muster-backup' and datname = current_database()`,
    ).then()
  const options = { url: target, backup, migrations, beforeCommit: cut, log: silentLog }
  await assert.rejects(restoreBackup({ ...options, signal: never }), /connection to the database was lost/)
  const stop = new AbortController()
  const interrupted = { ...options, beforeCommit: async () => stop.abort(new Error('stopped by a test')) }
  await assert.rejects(restoreBackup({ ...interrupted, signal: stop.signal }), /stopped by a test/)
  await backup.close()

  assert.deepEqual(await tablesOf(target), ['muster.migrations'])
  await restore(target, file, { migrations })
  assert.deepEqual(await dump(target), await dump(source))
})

test('rows that do not fit their table are refused with the name of the table', async (t) => {
  const file = join(await makeBackupFolder(t), 'misfit.tar.gz')
  const loose = withMigrations('create table fitted (id integer)')
  const source = await createMigrated(loose)
  await run(source, 'insert into fitted values (-1)')
  await backUp(source, file)
  const sameButTight = loose.map((migration) => ({
    ...migration,
    sql: migration.sql.replace('(id integer)', '(id integer check (id > 0))'),
  }))
  const target = await createEmptyDatabase()
  await assert.rejects(
    restore(target, file, { migrations: sameButTight }),
    /public\.fitted cannot be filled: .*check constraint/,
  )
  const renamed = loose.map((migration) => ({
    ...migration,
    sql: migration.sql.replace('(id integer)', '(number integer)'),
  }))
  await assert.rejects(restore(target, file, { migrations: renamed }), /public\.fitted has no column id/)
  const more = loose.map((migration) => ({
    ...migration,
    sql: migration.sql.replace('create table fitted', 'create table further (); create table fitted'),
  }))
  await assert.rejects(
    restore(target, file, { migrations: more }),
    /incomplete: the table public\.further is not in it/,
  )
})

test('an owner who is not a superuser can back up and restore', async (t) => {
  const folder = await makeBackupFolder(t)
  const migrations = withMigrations(TANGLE, 'create table slow (id integer check (pg_sleep(1.2) is not null))')
  const source = await createMigrated(migrations)
  await run(
    source,
    `insert into audit_log (id, action, actor_type) values (gen_random_uuid(), 'project.create', 'system')`,
    'insert into slow values (1)',
  )
  await backUp(source, join(folder, 'there.tar.gz'))
  const owned = await createOwnedDatabase(t)
  // A time-out that a careful administrator sets for an application must not end a restore.
  await run(owned.url, `alter role ${owned.role} set statement_timeout = '1s'`)
  await restore(owned.url, join(folder, 'there.tar.gz'), { migrations })
  assert.deepEqual(await dump(owned.url), await dump(source))
  assert.deepEqual(await describe(owned.url), await describe(source))
  await assert.rejects(run(owned.url, 'insert into slow values (2)'), /statement timeout/)
  await assert.rejects(run(owned.url, 'delete from audit_log'), /append-only/)

  await backUp(owned.url, join(folder, 'back.tar.gz'))
  const back = await createEmptyDatabase()
  await restore(back, join(folder, 'back.tar.gz'), { migrations })
  assert.deepEqual(await dump(back), await dump(source))
})

test('tables of other owners are left out and named, and tables that no migration makes are not restored', async (t) => {
  const file = join(await makeBackupFolder(t), 'shared.tar.gz')
  const owned = await createOwnedDatabase(t)
  await migrate({ url: owned.url, migrations: released, log: silentLog })
  await run(owned.url, 'create table guest (note text)', `insert into guest values ('of the same role')`)
  await run(owned.adminUrl, 'create schema provider', 'create table provider.objects (note text)')
  const summary = await backUp(owned.url, file)
  assert.deepEqual(summary.leftOut, ['provider.objects'])
  const target = await createEmptyDatabase()
  await run(target, 'create table guest (mine boolean)', 'insert into guest values (true)')
  const restored = await restore(target, file)
  assert.deepEqual(restored.leftOut, ['public.guest'])
  assert.equal(restored.tables, summary.tables - 1)
  assert.deepEqual(await run(target, 'select * from guest'), [{ mine: true }])
})

test('tables that a library makes by itself are filled too, and only when they are empty', async (t) => {
  const file = join(await makeBackupFolder(t), 'library.tar.gz')
  const install = (url: string): Promise<void> =>
    run(
      url,
      `create schema if not exists queue;
       create table if not exists queue.migrations (id integer primary key);
       create table if not exists queue.jobs (id bigint generated always as identity primary key, payload json);
       insert into queue.migrations values (1) on conflict do nothing`,
    ).then()
  const source = await createMigrated()
  await install(source)
  await run(source, `insert into queue.jobs (payload) values ('{"run": 1}'), ('{"run": 2}')`)
  await backUp(source, file)
  const libraries = [{ schema: 'queue', install }]
  const target = await createEmptyDatabase()
  await install(target)
  await restore(target, file, { libraries })
  assert.deepEqual(
    await run(target, 'select * from queue.jobs order by id'),
    await run(source, 'select * from queue.jobs order by id'),
  )
  assert.deepEqual(await run(target, `insert into queue.jobs (payload) values (null) returning id`), [{ id: 3 }])

  const others = await createEmptyDatabase()
  await install(others)
  await run(others, `insert into queue.jobs (payload) values ('{"of": "another program"}')`)
  await assert.rejects(restore(others, file, { libraries }), /not empty \(queue\.jobs has rows\)/)
  assert.deepEqual(await tablesOf(others), ['queue.jobs', 'queue.migrations'])
})

test('a server that starts during a restore waits, and finds a restored database', async (t) => {
  const file = join(await makeBackupFolder(t), 'meanwhile.tar.gz')
  const source = await createMigrated()
  await run(source, `insert into projects (id, name) values (gen_random_uuid(), 'Kept')`)
  await backUp(source, file)
  const target = await createEmptyDatabase()
  let starting: Promise<number> = Promise.resolve(-1)
  const beforeCommit = async (): Promise<void> => {
    starting = migrate({ url: target, migrations: released, log: silentLog })
    const waits = `select count(*)::int from pg_stat_activity
      where application_name = 'muster-migrate' and wait_event_type = 'Lock' and datname = current_database()`
    while ((await run(target, waits))[0]?.count !== 1);
  }
  await restore(target, file, { beforeCommit })
  assert.equal(await starting, 0)
  assert.deepEqual(await run(target, 'select name from projects'), [{ name: 'Kept' }])
})

async function createOwnedDatabase(t: {
  after(undo: () => Promise<unknown>): void
}): Promise<{ url: string; adminUrl: string; role: string }> {
  const adminUrl = await createEmptyDatabase()
  const role = `owner_${randomUUID().slice(0, 8)}`
  const database = new URL(adminUrl).pathname.slice(1)
  await run(
    await testServerUrl(),
    `create role ${role} login password 'secret'`,
    `alter database "${database}" owner to ${role}`,
  )
  t.after(async () => {
    await run(adminUrl, `drop owned by ${role} cascade`)
    await run(await testServerUrl(), `alter database "${database}" owner to current_user`, `drop role ${role}`)
  })
  const url = new URL(adminUrl)
  url.username = role
  url.password = 'secret'
  return { url: url.href, adminUrl, role }
}

async function tablesOf(url: string): Promise<unknown[]> {
  const rows = await run(
    url,
    `select schemaname || '.' || tablename as name from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
  )
  return rows.map(({ name }) => name)
}
