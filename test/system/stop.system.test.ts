// A server is stopped by every signal, at every moment, and during requests. The exit code is 0 and no process is left.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { runningUrl } from '../../src/db/embedded/running-url.ts'
import { type Cleanup, type Muster, readiness, spawnMuster, startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const cleanExit = { code: 0, signal: null }

for (const signal of ['SIGINT', 'SIGHUP'] as const) {
  test(`${signal} ends the server like SIGTERM: exit 0, no process left`, async (t) => {
    const muster = await startMuster(t)
    assert.deepEqual(await muster.kill(signal), cleanExit)
    await requireNothingLeft(muster)
  })
}

const moments: { when: string; hasCome: (muster: Muster) => boolean }[] = [
  { when: 'while the database is created', hasCome: (muster) => /Creating the database/.test(muster.stdout()) },
  { when: 'when the database has just started', hasCome: (muster) => /the database is running/.test(muster.stderr()) },
  { when: 'while it migrates', hasCome: (muster) => /Preparing the database/.test(muster.stdout()) },
]

test('SIGTERM at any moment of the start ends it with exit 0, and the next start works', async (t) => {
  for (const { when, hasCome } of moments) {
    const muster = await spawnMuster(t, ['start'])
    await until(() => hasCome(muster) || !muster.isRunning(), `the start is at the point: ${when}`, 60_000)
    assert.ok(muster.isRunning(), muster.stderr())
    assert.deepEqual(await muster.kill('SIGTERM'), cleanExit, `${when}:\n${muster.stderr()}`)
    assert.doesNotMatch(muster.stdout(), /is running/, `${when} came too late`)
    assert.doesNotMatch(muster.stderr(), /^muster:/m, 'a stop that was asked for is told as a failure')
    await requireNothingLeft(muster)
    const next = await startMuster(t, { dataDir: muster.dataDir })
    await next.stop()
  }
})

test('an interrupted command stops the database that it had started', async (t) => {
  const migrate = await spawnMuster(t, ['migrate'])
  await until(() => /Creating the database/.test(migrate.stdout()), 'it is at work', 60_000)
  assert.deepEqual(await migrate.kill('SIGTERM'), { code: 1, signal: null })
  assert.equal(migrate.stderr(), 'muster: Stopped by SIGTERM.\n')
  await requireNothingLeft(migrate)
})

test('a silent connection does not hold up a stop', async (t) => {
  const muster = await startMuster(t)
  const silent = connect(muster.port, '127.0.0.1')
  silent.on('error', () => {})
  t.after(() => silent.destroy())
  await once(silent, 'connect')
  assert.deepEqual(await muster.kill('SIGTERM'), cleanExit)
  assert.doesNotMatch(muster.stderr(), /took too long/)
  await requireNothingLeft(muster)
})

test('after SIGTERM the server takes no new requests, answers those in progress and exits with 0', async (t) => {
  const muster = await startMuster(t)
  const lock = await lockProjects(t, muster)
  const names = ['first', 'second', 'third', 'fourth', 'fifth']
  const answers = Promise.all(names.map((name) => muster.call('POST /api/projects', { body: { name } })))
  await until(() => lock.isWaitedForBy(names.length), 'all requests wait for the lock')

  // Two signals at once count as one: the parent of the server may pass on a signal that the server got as well.
  muster.signal('SIGINT')
  muster.signal('SIGTERM')
  await until(async () => (await readiness(muster)) !== 200, 'no new requests are served')
  assert.ok(muster.isRunning(), 'it ended before it had answered')
  await lock.release()
  assert.deepEqual(
    (await answers).map(({ status }) => status),
    names.map(() => 201),
  )
  assert.deepEqual(await muster.exited, cleanExit)
  await requireNothingLeft(muster)

  const next = await startMuster(t, { dataDir: muster.dataDir })
  const { body } = await next.call<{ items: { name: string }[] }>('GET /api/projects')
  assert.deepEqual(body.items.map(({ name }) => name).sort(), ['Demo', ...names].sort())
})

test('after a second SIGTERM the server does not wait for a request that hangs, and leaves no process', async (t) => {
  const muster = await startMuster(t)
  const lock = await lockProjects(t, muster)
  const hanging = muster.call('POST /api/projects', { body: { name: 'hardly made' } }).then(
    ({ status, text }) => ({ status, text }),
    () => ({ status: null, text: 'cut' }),
  )
  await until(() => lock.isWaitedForBy(1), 'the request waits for the lock')
  muster.signal('SIGTERM')
  await until(async () => {
    muster.signal('SIGTERM')
    return !muster.isRunning()
  }, 'the server has ended')
  assert.deepEqual(await muster.exited, cleanExit)
  await requireNothingLeft(muster)
  // Without the second signal the request would be answered after 10 s, with the sentence about busy rows. The stopping
  // database may end the session with the lock first, and then the request succeeds after all.
  const { status, text } = await hanging
  assert.ok(status === null || status === 503 || status === 201, text)
  assert.doesNotMatch(text, /busy with the same rows/)
})

async function requireNothingLeft(muster: Muster): Promise<void> {
  assert.deepEqual(await muster.processes(), [])
  await assert.rejects(stat(join(muster.dataDir, 'muster.pid')), { code: 'ENOENT' })
}

interface TableLock {
  isWaitedForBy(count: number): Promise<boolean>
  release(): Promise<void>
}

/** Keeps every write to the projects waiting, from a connection of its own to the embedded database. */
async function lockProjects(t: Cleanup, muster: Muster): Promise<TableLock> {
  const url = (await runningUrl(muster.dataDir)) ?? assert.fail('the database does not run')
  const client = new pg.Client({ connectionString: url })
  // The server stops the database under this connection.
  client.on('error', () => {})
  await client.connect()
  const release = (): Promise<void> => client.end().catch(() => {})
  t.after(release)
  await client.query('begin')
  await client.query('lock table projects in share mode')
  return {
    release,
    isWaitedForBy: async (count) => {
      const { rows } = await client.query<{ waiting: number }>(
        'select count(*)::int as waiting from pg_locks where not granted',
      )
      return rows[0]?.waiting === count
    },
  }
}
