import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import {
  familyOf,
  isAnythingLeft,
  makeFolder,
  makeServer,
  pidOfServer,
  query,
  serversIn,
  spawnChild,
} from '../../../test/kit/embedded-kit.ts'
import { superuserUrl } from '../../../test/kit/superuser.ts'
import { inSystem, inTest as test } from '../../../test/kit/tiers.ts'
import { until } from '../../../test/kit/until.ts'

test('the first start creates a database, the next one finds its rows at the same address', async (t) => {
  const folder = await makeFolder(t)
  const dataDir = folder.path
  const sentences: string[] = []
  const first = makeServer(folder, { onProgress: (sentence) => sentences.push(sentence) })
  assert.equal(first.state(), 'stopped')
  assert.throws(() => first.url(), /has not been started/)
  const firstAt = performance.now()
  assert.equal(await first.start(), 'created')
  t.diagnostic(`first start ${Math.round(performance.now() - firstAt)} ms`)
  assert.equal(first.state(), 'running')
  assert.deepEqual(sentences, [`Creating the database in ${dataDir}/postgres.`])
  const url = first.url()
  await query(url, 'create table kept as select 42 as answer')
  await first.stop()
  assert.equal(first.state(), 'stopped')

  const second = makeServer(folder)
  const secondAt = performance.now()
  assert.equal(await second.start(), 'started')
  t.diagnostic(`second start ${Math.round(performance.now() - secondAt)} ms`)
  assert.equal(second.url(), url)
  assert.deepEqual(await query(url, 'select answer from kept'), [{ answer: 42 }])
})

test('the server keeps every acknowledged write, listens on loopback only, and uses UTF-8 and UTC', async (t) => {
  const server = makeServer(await makeFolder(t))
  await server.start()
  const names = [
    'fsync',
    'synchronous_commit',
    'listen_addresses',
    'unix_socket_directories',
    'data_checksums',
    'TimeZone',
  ]
  const asSuperuser = await superuserUrl(server.dataDir, server.url())
  const [row] = await query(asSuperuser, `select ${names.map((name) => `current_setting('${name}') as "${name}"`)}`)
  assert.deepEqual(row, {
    fsync: 'on',
    synchronous_commit: 'on',
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    data_checksums: 'on',
    TimeZone: 'UTC',
  })
  const [database] = await query(
    server.url(),
    `select pg_encoding_to_char(encoding) as encoding, datlocale, upper('ä') as upper from pg_database where datname = current_database()`,
  )
  assert.deepEqual(database, { encoding: 'UTF8', datlocale: 'C.UTF-8', upper: 'Ä' })
  const wrong = new URL(server.url())
  wrong.password = 'guess'
  await assert.rejects(query(wrong.href, 'select 1'), /password authentication failed/)
})

test('secrets are readable for their owner only, and no password is left in any other file', async (t) => {
  const folder = await makeFolder(t)
  const dataDir = folder.path
  const server = makeServer(folder)
  await server.start()
  const names = await readdir(dataDir)
  assert.deepEqual(names.sort(), ['postgres', 'postgres.log', 'postgres.password', 'postgres.port'])
  for (const name of ['postgres.log', 'postgres.password', 'postgres.port']) {
    assert.equal((await stat(join(dataDir, name))).mode & 0o777, 0o600, name)
  }
  const password = (await readFile(join(dataDir, 'postgres.password'), 'utf8')).trim()
  assert.equal(Buffer.from(password, 'base64url').length, 32)
})

test('stopping leaves no process, even with sessions at work', async (t) => {
  const folder = await makeFolder(t)
  const dataDir = folder.path
  const server = makeServer(folder)
  await server.start()
  const sleeping = assert.rejects(query(server.url(), 'select pg_sleep(600)'))
  await until(async () => {
    const rows = await query(server.url(), `select 1 from pg_stat_activity where query like 'select pg_sleep%'`)
    return rows.length > 0
  }, 'the session sleeps')
  const family = await familyOf(await pidOfServer(dataDir))
  assert.ok(family.length > 3)
  await Promise.all([server.stop(), server.stop()])
  assert.equal(await isAnythingLeft(family), false)
  assert.deepEqual(await serversIn(dataDir), [])
  await sleeping
})

inSystem('stopping while starting ends the start and leaves no process', async (t) => {
  const folder = await makeFolder(t)
  const dataDir = folder.path
  const server = makeServer(folder)
  const starting = assert.rejects(server.start(), /stopped while it was starting/)
  await until(async () => (await readdir(dataDir)).some((name) => name.startsWith('postgres.new-')), 'initdb runs')
  await server.stop()
  await starting
  assert.equal(server.state(), 'stopped')
  assert.deepEqual((await readdir(dataDir)).sort(), ['postgres.password'])
  assert.equal(await server.start(), 'created')
})

inSystem('if the port is taken, the server takes another port and remembers it', async (t) => {
  const folder = await makeFolder(t)
  const dataDir = folder.path
  const server = makeServer(folder)
  await server.start()
  const before = Number(new URL(server.url()).port)
  await server.stop()
  const squatter = createServer()
  await new Promise<void>((resolve) => squatter.listen(before, '127.0.0.1', resolve))
  try {
    assert.equal(await server.start(), 'started')
  } finally {
    squatter.close()
  }
  const after = Number(new URL(server.url()).port)
  assert.notEqual(after, before)
  assert.equal(Number(await readFile(join(dataDir, 'postgres.port'), 'utf8')), after)
})

inSystem('a first start killed half way does not spoil the folder', async (t) => {
  const folder = await makeFolder(t)
  const dataDir = folder.path
  for (const name of ['postgres.new', 'postgres.new-abc123']) {
    await mkdir(join(dataDir, name, 'data', 'base'), { recursive: true })
    await writeFile(join(dataDir, name, 'data', 'PG_VERSION'), '18\n')
    await writeFile(join(dataDir, name, 'password'), 'left behind')
  }
  await writeFile(join(dataDir, 'postgres.password'), 'of the first try\n', { mode: 0o600 })
  const server = makeServer(folder)
  assert.equal(await server.start(), 'created')
  assert.deepEqual(await query(server.url(), 'select 1 as one'), [{ one: 1 }])
  assert.deepEqual(
    (await readdir(dataDir)).filter((name) => name.includes('.new')),
    [],
  )
})

inSystem('after kill -9 in the middle of the first start the next start creates the database', async (t) => {
  const folder = await makeFolder(t)
  const { kill } = spawnChild(folder)
  const isUnderWay = async (): Promise<boolean> => {
    const staging = (await readdir(folder.path)).find((name) => name.startsWith('postgres.new-'))
    return staging !== undefined && (await readdir(join(folder.path, staging))).includes('data')
  }
  await until(isUnderWay, 'initdb is under way')
  await kill('SIGKILL')
  const server = makeServer(folder)
  assert.equal(await server.start(), 'created')
  assert.deepEqual(await query(server.url(), 'select 1 as one'), [{ one: 1 }])
})

inSystem(
  'the errors about another PostgreSQL, foreign files, and a lost or wrong password are one sentence each',
  async (t) => {
    const folder = await makeFolder(t)
    const dataDir = folder.path
    const cluster = join(dataDir, 'postgres')
    await mkdir(cluster)
    await writeFile(join(cluster, 'notes.txt'), 'not a database')
    const server = makeServer(folder)
    await assert.rejects(server.start(), /^Error: .*\/postgres is not empty and holds no database: move it away/)
    await writeFile(join(cluster, 'PG_VERSION'), '17\n')
    await assert.rejects(
      server.start(),
      /was made by PostgreSQL 17, and this Muster brings PostgreSQL 18: run "muster backup"/,
    )
    await writeFile(join(cluster, 'PG_VERSION'), '18\n')
    await assert.rejects(server.start(), /postgres\.password is missing/)
    assert.equal(server.state(), 'stopped')

    const other = join(dataDir, 'other')
    await mkdir(other)
    const second = makeServer(folder, { dataDir: other })
    await second.start()
    await second.stop()
    await writeFile(join(other, 'postgres.password'), 'wrong\n', { mode: 0o600 })
    await assert.rejects(second.start(), /could not be started: it does not accept the password in postgres\.password/)
    assert.deepEqual(await serversIn(other), [])
  },
)

inSystem('a server that cannot start gives the reason', async (t) => {
  const folder = await makeFolder(t)
  const dataDir = folder.path
  const server = makeServer(folder)
  await server.start()
  await server.stop()
  await writeFile(join(dataDir, 'postgres', 'pg_hba.conf'), 'nonsense\n')
  await assert.rejects(
    server.start(),
    /^Error: The database could not be started: could not load .*pg_hba\.conf.*postgres\.log/,
  )
})
