// The feed of changes over real processes: changes that another server made, and ids that hold across restarts of the
// server and of its database.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTestPool, createUnusedDatabase } from '../kit/database.ts'
import { type FeedStream, openFeed } from '../kit/feed-stream.ts'
import { type Muster, startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const env = {
  MUSTER_SECRET_KEY: 'one key for all servers over this database',
  MUSTER_ADMIN_TOKEN: 'one-admin-token-for-all-servers',
  MUSTER_DEMO: 'off',
}

const open = (muster: Muster, path: string, lastEventId?: string): Promise<FeedStream> =>
  openFeed(new URL(path, muster.url).href, {
    authorization: `Bearer ${muster.adminToken()}`,
    ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
  })

async function made(muster: Muster, path: string, body: object): Promise<string> {
  const answer = await muster.call<{ id: string }>(`POST ${path}`, { body })
  assert.ok(answer.status < 300, answer.text)
  return answer.body.id
}

/** Starts a run, and returns its id. */
async function startRun(muster: Muster, base: string): Promise<string> {
  const model = { provider: 'offline', name: 'offline' }
  const agent = await made(muster, `${base}/agents`, { name: `agent ${Math.random()}`, model })
  const headers = { prefer: 'respond-async' }
  const { body } = await muster.call<{ id: string }>(`POST ${base}/agents/${agent}/trigger`, {
    body: { input: 'Two lines about rain.' },
    headers,
  })
  return body.id
}

test('a change is told at every server over the database, whichever made it, and an id holds at each of them', async (t) => {
  const databaseUrl = await createUnusedDatabase()
  const api = await startMuster(t, { databaseUrl, env: { ...env, MUSTER_ROLE: 'api' } })
  const worker = await startMuster(t, { databaseUrl, env: { ...env, MUSTER_ROLE: 'worker' } })
  const all = await startMuster(t, { databaseUrl, env })
  const project = await made(api, '/api/projects', { name: 'watched' })
  const base = `/api/projects/${project}`
  const streams = [await open(api, `${base}/events`), await open(all, `${base}/events`), await open(all, '/api/events')]

  const run = await startRun(api, base)
  for (const stream of streams) await stream.sees(run, 'completed')
  const task = await made(all, `${base}/tasks`, { title: 'a task' })
  for (const stream of streams) await stream.sees(task, 'pending')

  // The server of the first stream dies. Its reader goes on at another server, and at the same one when it is back.
  const [first] = streams
  const lastEventId = first?.lastId() ?? ''
  await api.kill('SIGKILL')
  await first?.closes()
  await all.call(`PATCH ${base}/tasks/${task}`, { body: { status: 'completed', result: 'ok' } })
  const second = await startRun(all, base)
  for (const stream of streams.slice(1)) await stream.sees(second, 'completed')
  const again = await startMuster(t, { databaseUrl, env: { ...env, MUSTER_ROLE: 'api' } })
  for (const server of [all, again]) {
    const back = await open(server, `${base}/events`, lastEventId)
    await back.sees(second, 'completed')
    await back.sees(task, 'completed')
    await sleep(500)
    assert.equal(back.of(task).length, 1)
    assert.equal(back.of(second).length, 1)
    assert.deepEqual(back.of(run), [], 'a change that was told before is not told again')
    assert.ok(back.events.every(({ event }) => event === 'change'))
    back.leave()
  }
  for (const stream of streams) stream.leave()
  await worker.stop()
})

test('an id holds when the server and its own database are killed and started again', async (t) => {
  const first = await startMuster(t, { env: { MUSTER_DEMO: 'off' } })
  const project = await made(first, '/api/projects', { name: 'watched' })
  const base = `/api/projects/${project}`
  const stream = await open(first, `${base}/events`)
  const [told, untold] = [
    await made(first, `${base}/tasks`, { title: 'told' }),
    await made(first, `${base}/tasks`, { title: 'untold' }),
  ]
  await stream.sees(untold, 'pending')
  const lastEventId = stream.of(told)[0]?.id ?? assert.fail()
  await first.stop()
  const second = await startMuster(t, { dataDir: first.dataDir, env: { MUSTER_DEMO: 'off' } })
  const later = await made(second, `${base}/tasks`, { title: 'later' })
  const back = await open(second, `${base}/events`, lastEventId)
  await back.sees(later, 'pending')
  assert.deepEqual(
    back.events.map(({ data }) => data.id),
    [untold, later],
  )
  back.leave()
})

test('a server sends no statement for the feed while nobody reads it, and about nine a second while somebody does', async (t) => {
  const databaseUrl = await createUnusedDatabase()
  const muster = await startMuster(t, { databaseUrl, env })
  const project = await made(muster, '/api/projects', { name: 'watched' })
  const pool = createTestPool(databaseUrl, 1)
  t.after(() => pool.end())
  const scans = async (): Promise<number> => {
    await pool.query('select pg_stat_clear_snapshot()')
    const { rows } = await pool.query<{ count: number }>(
      `select coalesce(sum(idx_scan), 0)::int as count from pg_stat_user_indexes where indexrelname = 'agent_messages_changed'`,
    )
    return rows[0]?.count ?? 0
  }
  // Statistics of a session are reported within ten seconds after its transactions.
  const stream = await open(muster, `/api/projects/${project}/events`)
  await until(async () => (await scans()) > 0, 'the feed is read', 30_000)
  stream.leave()
  await stream.closes()
  await sleep(12_000)
  const before = await scans()
  await sleep(5_000)
  assert.equal(await scans(), before)
})
