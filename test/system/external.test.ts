// Several servers over one external PostgreSQL: they migrate once, agree with each other, and name the problems of the
// database they were given.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import type pg from 'pg'
import { loadMigrations } from '../../src/db/migrate.ts'
import { atEnd } from '../kit/at-end.ts'
import { createEmptyDatabase, migrationsFolder } from '../kit/database.ts'
import { createDatabaseProxy } from '../kit/database-proxy.ts'
import { freePort } from '../kit/free-port.ts'
import { startPooler } from '../kit/pooler.ts'
import { isReady, type Muster, runMuster, spawnMuster, startMuster } from '../kit/process.ts'
import { withClient } from '../kit/test-server.ts'
import { until } from '../kit/until.ts'
import { requireCleanRefusals, requireNothingLost, startWriteLoad } from '../kit/write-load.ts'

const wholeFile = { after: atEnd }
const SECRET_KEY = 'one key for all servers over this database'
const env = { MUSTER_SECRET_KEY: SECRET_KEY, MUSTER_ADMIN_TOKEN: 'one-admin-token-for-all-servers' }
const PASSWORD = 'not-the-password-of-anything'

let databaseUrl = ''
let servers: Muster[] = []
let first: Muster
let second: Muster
/** A start against a port on which nobody listens. It takes half a minute, in which the other tests run. */
let hopeless: { server: Muster; port: number }

before(async () => {
  const port = await freePort()
  const nowhere = `postgres://someone:${PASSWORD}@127.0.0.1:${port}/muster`
  hopeless = { server: await spawnMuster(wholeFile, ['start'], { databaseUrl: nowhere }), port }
  databaseUrl = await createEmptyDatabase()
  const roles = ['all', 'all', 'api', 'worker']
  servers = await Promise.all(
    roles.map((role) => startMuster(wholeFile, { databaseUrl, env: { ...env, MUSTER_ROLE: role } })),
  )
  first = servers[0] ?? assert.fail()
  second = servers[1] ?? assert.fail()
})

test('four servers that start at once on an empty database migrate it once, and all serve', async () => {
  const known = await loadMigrations(migrationsFolder)
  const { rows } = await query('select version, name from muster.migrations order by version')
  assert.deepEqual(
    rows,
    known.map(({ version, name }) => ({ version, name })),
  )
  const told = servers.flatMap((server) => [...server.stderr().matchAll(/"migrations":(\d+).*was migrated/g)])
  assert.deepEqual(
    told.map(([, count]) => Number(count)),
    [known.length],
  )
  const { body } = await first.call<{ items: { name: string }[] }>('GET /api/projects')
  assert.deepEqual(
    body.items.map(({ name }) => name),
    ['Demo'],
  )
})

test('a key made on one server works on the other, and stops working there within 5 s of its revocation', async (t) => {
  const project = await makeProject(first, 'shared')
  const route = `/api/projects/${project}/keys`
  const made = await first.call<{ id: string; key: string }>(`POST ${route}`, {
    body: { name: 'shared', role: 'viewer' },
  })
  const token = made.body.key
  for (const server of servers.slice(0, 3)) assert.equal((await server.call('GET /api/me', { token })).status, 200)

  assert.equal((await first.call(`DELETE ${route}/${made.body.id}`)).status, 204)
  const revokedAt = performance.now()
  assert.equal((await first.call('GET /api/me', { token })).status, 401, 'the first server still takes it')
  await until(
    async () => (await second.call('GET /api/me', { token })).status === 401,
    'the other server refuses the key',
    5_000,
  )
  t.diagnostic(`refused by the other server after ${Math.round(performance.now() - revokedAt)} ms`)
})

test('one Idempotency-Key sent to two servers at once gives one row and one answer', async () => {
  for (let round = 1; round <= 5; round++) {
    const name = randomUUID()
    const call = { body: { name }, headers: { 'idempotency-key': name } }
    const answers = await Promise.all(
      [first, second, first, second].map((server) => server.call('POST /api/projects', call)),
    )
    for (const answer of answers) assert.equal(answer.status, 201, answer.text)
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
    assert.equal(answers.filter(({ headers }) => headers.has('idempotency-replayed')).length, 3)
    const { rows } = await query('select count(*)::int as count from projects where name = $1', [name])
    assert.deepEqual(rows, [{ count: 1 }])
  }
})

for (const [which, key] of [
  ['another MUSTER_SECRET_KEY', { MUSTER_SECRET_KEY: `${SECRET_KEY}.` }],
  ['a key of its own making', {}],
] as const) {
  test(`a server with ${which} is refused`, async (t) => {
    const { code, stderr } = await runMuster(t, ['start'], { databaseUrl, env: key })
    assert.match(
      complaint(stderr),
      /^muster: This database was made with another secret key\. Set MUSTER_SECRET_KEY .*$/,
    )
    assert.equal(code, 1)
    await until(() => isReady(first), 'the first server is ready')
  })
}

test('a schema changed by a newer release is refused only if the change is breaking', async (t) => {
  t.after(async () => void (await query('delete from muster.migrations where version = 9999')))
  await query(`insert into muster.migrations (version, name, checksum, breaking)
               values (9999, '9999_from_the_future', 'x', true)`)
  const refused = await runMuster(t, ['start'], { databaseUrl, env })
  assert.equal(
    complaint(refused.stderr),
    'muster: This database was changed by a newer Muster in a way this one cannot read (9999_from_the_future). Start the newer release.',
  )
  assert.equal(refused.code, 1)

  await query('update muster.migrations set breaking = false where version = 9999')
  const accepted = await startMuster(t, { databaseUrl, env })
  await accepted.stop()
})

test('a migration that differs from this release’s migration of the same number is refused', async (t) => {
  const { rows } = await query('select checksum from muster.migrations where version = 1')
  t.after(
    async () => void (await query('update muster.migrations set checksum = $1 where version = 1', [rows[0]?.checksum])),
  )
  await query(`update muster.migrations set checksum = 'other' where version = 1`)
  const { code, stderr } = await runMuster(t, ['start'], { databaseUrl, env })
  assert.match(complaint(stderr), /^muster: Migration 0001_\w+ is not the one this database was made with\./)
  assert.equal(code, 1)
})

test('no write is lost although all connections are cut under load, again and again', async (t) => {
  const project = await makeProject(first, 'load')
  const loads = [first, second].map((server) => startWriteLoad(t, server, project))
  for (let cut = 1; cut <= 3; cut++) {
    const goals = loads.map((load) => load.acknowledged.length + 15)
    await until(
      () => loads.every((load, index) => load.acknowledged.length >= (goals[index] ?? 0)),
      'there is load',
      60_000,
    )
    const { rows } = await query(
      `select count(pg_terminate_backend(pid))::int as count from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    )
    assert.ok(Number(rows[0]?.count) > 1, 'nothing was cut')
  }
  for (const load of loads) await load.stop()
  for (const { acknowledged, refusals } of loads) {
    requireCleanRefusals(refusals)
    await withClient(databaseUrl, (db) => requireNothingLost(db, acknowledged))
    t.diagnostic(`${acknowledged.length} writes acknowledged, ${refusals.length} refused`)
  }
  for (const server of servers) await until(() => isReady(server), 'it is ready')
})

test('a start waits for a late database; a retry gets the reply that was cut after the commit', async (t) => {
  const proxy = createDatabaseProxy(t, databaseUrl, await freePort())
  const muster = await spawnMuster(t, ['start'], { databaseUrl: proxy.url, env })
  await until(() => /Waiting for the database/.test(muster.stdout()) || !muster.isRunning(), 'it waits', 60_000)
  await proxy.listen()
  await until(() => isReady(muster).catch(() => false), 'it is ready', 60_000)

  const name = randomUUID()
  const call = { body: { name }, headers: { 'idempotency-key': name } }
  proxy.cutAtCommit(true)
  const cut = await muster.call('POST /api/projects', call)
  proxy.cutAtCommit(false)
  assert.ok(proxy.cuts() >= 1, 'nothing was cut') // a task in the background may commit at the same moment
  requireCleanRefusals([cut])
  const { rows } = await query('select id from projects where name = $1', [name])
  assert.equal(rows.length, 1, 'it was cut before the commit')
  const retried = await muster.call('POST /api/projects', call)
  assert.deepEqual([retried.status, retried.body.id], [201, rows[0]?.id])
  assert.equal((await query('select from projects where name = $1', [name])).rows.length, 1)
  await muster.stop()
})

test('a wrong password and a missing database are reported at once', async (t) => {
  const wrongPassword = withPart(databaseUrl, (url) => {
    url.password = PASSWORD
  })
  const noDatabase = withPart(databaseUrl, (url) => {
    url.pathname = '/there_is_none'
  })
  const missing = await runMuster(t, ['start'], { databaseUrl: noDatabase })
  assert.equal(
    complaint(missing.stderr),
    'muster: DATABASE_URL cannot be used: database "there_is_none" does not exist',
  )
  assert.deepEqual([missing.code, missing.stdout], [1, ''])

  const isAccepted = await withClient(wrongPassword, async () => true).catch(() => false)
  if (isAccepted) return t.diagnostic('this PostgreSQL accepts any password')
  const wrong = await runMuster(t, ['start'], { databaseUrl: wrongPassword })
  assert.match(
    complaint(wrong.stderr),
    /^muster: DATABASE_URL cannot be used: password authentication failed for user /,
  )
  assert.deepEqual([wrong.code, wrong.stdout], [1, ''])
  assert.equal(wrong.stderr.includes(PASSWORD), false)
})

test('a start through a pooler in transaction mode is refused with one sentence, and doctor says the same', async (t) => {
  const pooler = await startPooler(t, databaseUrl, 'transaction')
  const refused = await runMuster(t, ['start'], { databaseUrl: pooler.url, env })
  assert.match(complaint(refused.stderr), /^muster: DATABASE_URL leads to a pooler in transaction mode, .*$/)
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  const doctor = await runMuster(t, ['doctor'], { databaseUrl: pooler.url, env })
  assert.match(doctor.stdout, /DATABASE_URL leads to a pooler in transaction mode/)
  assert.equal(doctor.code, 1)
})

test('a server behind a pooler in session mode serves like any other', async (t) => {
  const pooler = await startPooler(t, databaseUrl, 'session')
  const behind = await startMuster(t, { databaseUrl: pooler.url, env: { ...env, MUSTER_POOL: '5' } })
  const { status, text } = await behind.call('POST /api/projects', { body: { name: 'behind a pooler' } })
  assert.equal(status, 201, text)
  await behind.stop()
})

test('the servers stop with exit 0 and leave the database alone', async () => {
  for (const server of servers) await server.stop()
  assert.equal((await query('select 1 as one')).rows.length, 1)
})

test('a start waits for a PostgreSQL that cannot be reached, and then reports it', async () => {
  const { server, port } = hopeless
  assert.deepEqual(await server.exited, { code: 1, signal: null })
  assert.equal(server.stdout(), `Waiting for the database (connect ECONNREFUSED 127.0.0.1:${port})\n`)
  assert.equal(
    complaint(server.stderr()),
    `muster: DATABASE_URL cannot be used: connect ECONNREFUSED 127.0.0.1:${port}`,
  )
  assert.equal((server.stdout() + server.stderr()).includes(PASSWORD), false)
})

async function makeProject(server: Muster, name: string): Promise<string> {
  const { status, text, body } = await server.call<{ id: string }>('POST /api/projects', { body: { name } })
  assert.equal(status, 201, text)
  return body.id
}

const query = (sql: string, values: unknown[] = []): Promise<pg.QueryResult<Record<string, unknown>>> =>
  withClient(databaseUrl, (client) => client.query<Record<string, unknown>>(sql, values))

function withPart(url: string, change: (url: URL) => void): string {
  const changed = new URL(url)
  change(changed)
  return changed.href
}

/** The output without log lines; a stack would show here. */
const complaint = (stderr: string): string =>
  stderr
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('{'))
    .join('\n')
