import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import {
  familyOf,
  isAnythingLeft,
  makeFolder,
  makeServer,
  pidOfServer,
  query,
  serversIn,
} from '../../../test/kit/embedded-kit.ts'
import { inSystem, inTest as test } from '../../../test/kit/tiers.ts'
import { until } from '../../../test/kit/until.ts'
import { silentLog } from '../../kernel/log.ts'
import type { UpServer } from './bring-up.ts'
import { supervise } from './supervise.ts'

test('kill -9 of the server: down, then running at the same address with every acknowledged row', async (t) => {
  const folder = await makeFolder(t)
  const server = makeServer(folder)
  await server.start()
  const url = server.url()
  await query(url, 'create table kept (n int)')
  const pool = new pg.Pool({ connectionString: url, max: 4, connectionTimeoutMillis: 2_000 })
  pool.on('error', () => undefined)
  folder.defer(() => pool.end())
  let acknowledged = 0
  for (let round = 0; round < 2; round++) {
    for (let n = 0; n < 50; n++) {
      await pool.query('insert into kept values ($1)', [acknowledged])
      acknowledged++
    }
    const pid = await pidOfServer(folder.path)
    process.kill(pid, 'SIGKILL')
    await until(() => server.state() === 'down', 'the death is noticed')
    const at = performance.now()
    await until(() => server.state() === 'running', 'the server runs again')
    t.diagnostic(`restart ${Math.round(performance.now() - at)} ms`)
    assert.notEqual(await pidOfServer(folder.path), pid)
    const { rows } = await pool.query('select count(*)::int as n from kept')
    assert.deepEqual(rows, [{ n: acknowledged }])
  }
  assert.equal(server.url(), url)
})

inSystem('a session that computes without end does not keep a killed server from coming back', async (t) => {
  const folder = await makeFolder(t)
  const server = makeServer(folder)
  await server.start()
  const busy = query(server.url(), 'do $$ begin loop end loop; end $$').catch((error: Error) => error)
  await until(async () => {
    const rows = await query(
      server.url(),
      `select 1 from pg_stat_activity where query like 'do %' and state = 'active'`,
    )
    return rows.length > 0
  }, 'the session computes')
  process.kill(await pidOfServer(folder.path), 'SIGKILL')
  await until(() => server.state() === 'down', 'the death is noticed')
  await until(() => server.state() === 'running', 'the server runs again')
  assert.ok((await busy) instanceof Error)
})

test('kill -9 of one session: the server recovers by itself and answers again', async (t) => {
  const folder = await makeFolder(t)
  const server = makeServer(folder)
  await server.start()
  const client = new pg.Client({ connectionString: server.url() })
  client.on('error', () => undefined)
  await client.connect()
  const { rows } = await client.query('select pg_backend_pid() as pid')
  process.kill(rows[0].pid, 'SIGKILL')
  await until(
    () =>
      query(server.url(), 'select 1')
        .then(() => true)
        .catch(() => false),
    'the server answers again',
  )
  assert.equal(server.state(), 'running')
  await client.end().catch(() => undefined)
})

inSystem('stopping a server that is down and cannot start ends the retries and leaves no process', async (t) => {
  const folder = await makeFolder(t)
  const server = makeServer(folder)
  await server.start()
  const pid = await pidOfServer(folder.path)
  const family = await familyOf(pid)
  await writeFile(join(folder.path, 'postgres', 'pg_hba.conf'), 'nonsense\n')
  process.kill(pid, 'SIGKILL')
  await until(() => server.state() === 'down', 'the death is noticed')
  await server.stop()
  assert.equal(server.state(), 'stopped')
  assert.equal(await isAnythingLeft(family), false)
  assert.deepEqual(await serversIn(folder.path), [])
})

test('failed restarts wait 100 ms, then twice as long each time up to 5 s, and go on', async () => {
  const ending = new AbortController()
  const waits: number[] = []
  await supervise({
    first: fakeServer(Promise.resolve('exit code 1')),
    bringUpAgain: async () => {
      if (waits.length < 9) throw new Error('not yet')
      return fakeServer(new Promise(() => undefined))
    },
    onDown: () => undefined,
    onUp: () => ending.abort(),
    log: silentLog,
    signal: ending.signal,
    wait: async (ms) => {
      waits.push(ms)
    },
  })
  assert.deepEqual(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000])
})

test('a server that dies right after each start is held back as well', async () => {
  const ending = new AbortController()
  const waits: number[] = []
  await supervise({
    first: fakeServer(Promise.resolve('exit code 1')),
    bringUpAgain: async () => fakeServer(Promise.resolve('exit code 1')),
    onDown: () => undefined,
    onUp: () => {
      if (waits.length === 4) ending.abort()
    },
    log: silentLog,
    signal: ending.signal,
    wait: async (ms) => {
      waits.push(ms)
    },
  })
  assert.deepEqual(waits, [100, 200, 400, 800])
})

function fakeServer(gone: Promise<string>): UpServer {
  return { postmaster: { pid: 1, gone, isGone: async () => false, signal: () => undefined }, port: 1, isAdopted: false }
}
