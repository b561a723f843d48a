// The role that Muster works under: the limits of its rights, and its creation in a data folder of an earlier release.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, makeServer, query } from '../../../test/kit/embedded-kit.ts'
import { superuserUrl } from '../../../test/kit/superuser.ts'
import { silentLog } from '../../kernel/log.ts'
import { loadMigrations, migrate } from '../migrate.ts'
import { runningUrl } from './running-url.ts'

const migrationsFolder = new URL('../../../migrations', import.meta.url).pathname

/** Everything that the role does not own, except for the objects of PostgreSQL itself. */
const NOT_OURS = `
  with system as (select oid from pg_namespace where nspname ~ '^pg_' or nspname = 'information_schema')
  select relname as name from pg_class where relowner <> current_user::regrole and relnamespace not in (select oid from system)
  union all select proname from pg_proc where proowner <> current_user::regrole and pronamespace not in (select oid from system)
  union all select typname from pg_type where typowner <> current_user::regrole and typnamespace not in (select oid from system)
  union all select nspname from pg_namespace where nspowner <> current_user::regrole and nspname <> 'public'
    and oid not in (select oid from system)`

test('the role owns its database and is no superuser: it reads no file, runs no program, changes no setting', async (t) => {
  const server = makeServer(await makeFolder(t))
  await server.start()
  const url = server.url()
  assert.deepEqual(
    await query(
      url,
      `select current_user, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls
       from pg_roles where rolname = current_user`,
    ),
    [
      {
        current_user: 'muster_app',
        rolsuper: false,
        rolcreaterole: false,
        rolcreatedb: false,
        rolreplication: false,
        rolbypassrls: false,
      },
    ],
  )
  for (const sql of [
    `copy (select 1) to program 'true'`,
    `create table t (line text); copy t from '/etc/passwd'`,
    `select pg_read_file('postgresql.conf')`,
    `select pg_ls_dir('.')`,
    `alter system set fsync = off`,
    `set session_replication_role = replica`,
    'create role another superuser',
    'alter role muster_app superuser',
    'set role muster',
    'create extension file_fdw',
  ]) {
    await assert.rejects(query(url, sql), /permission denied|must be superuser|not available|only roles with/i, sql)
  }
  const wrong = new URL(url)
  wrong.username = 'muster'
  await assert.rejects(query(wrong.href, 'select 1'), /password authentication failed/)
  assert.equal(await runningUrl(server.dataDir), url)
})

test('a data folder of an earlier release is handed over whole, at whatever point its first start was killed', async (t) => {
  const server = makeServer(await makeFolder(t))
  await server.start()
  const old = await superuserUrl(server.dataDir, server.url())
  // An earlier release left one role, which made and owns everything.
  await query(old, 'alter database muster owner to muster')
  await query(old, 'drop role muster_app')
  assert.equal(await runningUrl(server.dataDir), old)
  await migrate({ url: old, migrations: await loadMigrations(migrationsFolder), log: silentLog })
  await query(
    old,
    `set search_path = public; create type mood as enum ('fine'); create sequence counter; create table kept (id serial, answer int);
     create view shown as select answer from kept; insert into kept (answer) values (42);
     create function one() returns int language sql as 'select 1'; create domain small as int check (value < 9);
     create type pair as (a int, b int); create materialized view copied as select answer from kept`,
  )
  // A start that was killed before it committed the hand-over leaves a role that owns nothing.
  await query(old, `create role muster_app superuser password 'of another time'`)
  await server.stop()

  assert.equal(await server.start(), 'started')
  const url = server.url()
  assert.deepEqual(await query(url, NOT_OURS), [])
  assert.deepEqual(await query(url, 'select rolsuper from pg_roles where rolname = current_user'), [
    { rolsuper: false },
  ])
  assert.deepEqual(await query(url, 'select answer from shown'), [{ answer: 42 }])
  await query(url, `insert into kept (answer) values (nextval('counter')); alter table kept add column more int`)
  assert.equal(await migrate({ url, migrations: await loadMigrations(migrationsFolder), log: silentLog }), 0)
  const password = new URL(url).password
  assert.ok(!(await readFile(join(server.dataDir, 'postgres.log'), 'utf8')).includes(password))

  // The next start has nothing to do, and an earlier release can still open the folder.
  await server.stop()
  assert.equal(await server.start(), 'started')
  assert.equal(server.url(), url)
  const again = await superuserUrl(server.dataDir, url)
  assert.deepEqual(await query(again, 'select answer from kept order by id limit 1'), [{ answer: 42 }])
})
