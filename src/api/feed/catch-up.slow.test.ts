// Readers that are slow, away for long, or cut at any moment: no last state is missed, and memory is bounded.
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { ADMIN_TOKEN, createTestApp } from '../../../test/kit/app.ts'
import { type FeedStream, openFeed } from '../../../test/kit/feed-stream.ts'
import { howMany, seeds } from '../../../test/kit/how-many.ts'
import { createRandom, type Random } from '../../../test/kit/random.ts'
import { inSystem, inTest as test } from '../../../test/kit/tiers.ts'
import { until } from '../../../test/kit/until.ts'

const kit = await createTestApp({})
const address = await kit.app.listen({ port: 0, host: '127.0.0.1' })
const sockets = new Set<Socket>()
kit.app.server.on('connection', (socket: Socket) => {
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
})

const open = (projectId: string, lastEventId?: string): Promise<FeedStream> =>
  openFeed(`${address}/api/projects/${projectId}/events`, {
    authorization: `Bearer ${ADMIN_TOKEN}`,
    ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
  })

async function insertTasks(projectId: string, count: number): Promise<string[]> {
  const { rows } = await kit.pool.query<{ id: string }>(
    `insert into tasks (id, project_id, kind, title, created_by)
     select gen_random_uuid(), $1, 'work', 'a task', '{}' from generate_series(1, $2::int) returning id`,
    [projectId, count],
  )
  return rows.map((row) => row.id)
}

test('a reader that was away while thousands of things changed is told of each once', async () => {
  const { id: projectId } = await kit.createProject()
  const first = await open(projectId)
  first.leave()
  const ids: string[] = []
  for (let made = 0; made < 2_500; made += 50) {
    const batches = await Promise.all(Array.from({ length: 50 }, () => insertTasks(projectId, 1)))
    ids.push(...batches.flat())
  }
  const stream = await open(projectId, first.lastId())
  await until(() => stream.events.length >= ids.length, 'all are told', 60_000)
  await sleep(300)
  assert.equal(stream.events.length, ids.length)
  assert.deepEqual(new Set(stream.events.map(({ data }) => data.id)), new Set(ids))
  stream.leave()
})

test('a transaction that changes more than can be told gives a reset', async () => {
  const { id: projectId } = await kit.createProject()
  const { id: otherId } = await kit.createProject()
  const [stream, other] = [await open(projectId), await open(otherId)]
  await insertTasks(projectId, 21_000)
  await until(() => stream.events.length > 0, 'there is an event', 60_000)
  const [later = ''] = await insertTasks(projectId, 1)
  await stream.sees(later, 'pending')
  assert.deepEqual(
    stream.events.map(({ event }) => event),
    ['reset', 'change'],
  )
  const [elsewhere = ''] = await insertTasks(otherId, 1)
  await other.sees(elsewhere, 'pending')
  assert.equal(other.events.length, 1, 'a reader of another project is not concerned')
  stream.leave()
  other.leave()
})

inSystem(
  'a reader that takes nothing does not make memory grow, and sees the last state when it reads again',
  async () => {
    const { id: projectId } = await kit.createProject()
    const ids = await insertTasks(projectId, 4_000)
    const before = new Set(sockets)
    const stream = await open(projectId)
    const socket = [...sockets].find((each) => !before.has(each)) ?? assert.fail('no connection')
    stream.pause()
    let longest = 0
    // Each round brings a megabyte. The system takes some; the rest must not pile up.
    let rounds = 0
    await until(
      async () => {
        await kit.pool.query('update tasks set title = $2 where project_id = $1', [projectId, `round ${++rounds}`])
        await sleep(150)
        longest = Math.max(longest, socket.writableLength)
        return longest > 0 && rounds > 10
      },
      'the connection is full',
      100_000,
    )
    for (let more = 0; more < 10; more++) {
      await kit.pool.query('update tasks set title = $2 where project_id = $1', [projectId, `more ${more}`])
      await sleep(150)
      longest = Math.max(longest, socket.writableLength)
    }
    assert.ok(longest < 3_000_000, `${longest} characters wait`)
    await kit.pool.query(`update tasks set status = 'cancelled' where project_id = $1`, [projectId])
    const told = stream.events.length
    stream.resume()
    await until(
      () => stream.events.slice(told).filter(({ data }) => data.status === 'cancelled').length >= ids.length,
      'every last state is told',
      60_000,
    )
    stream.leave()
  },
)

test('readers that are cut at random see the last state of everything, whatever the order of commits', async () => {
  for (const seed of seeds(howMany(2, 100))) {
    const random = createRandom(seed)
    const { id: projectId } = await kit.createProject()
    const ids = await insertTasks(projectId, 12)
    const told = new Map<string, string>()
    let isOver = false
    let stream = await open(projectId)
    const reading = (async () => {
      while (!isOver) {
        await sleep(random.below(250))
        stream.leave()
        for (const { event, data } of stream.events) {
          assert.equal(event, 'change')
          told.set(data.id, `${data.status} ${data.at}`)
        }
        stream = await open(projectId, stream.lastId())
      }
    })()
    await Promise.all(Array.from({ length: 6 }, () => writeAtRandom(ids, random)))
    isOver = true
    await reading
    const [last = ''] = await insertTasks(projectId, 1)
    await stream.sees(last, 'pending')
    for (const { data } of stream.events) told.set(data.id, `${data.status} ${data.at}`)
    stream.leave()
    const { rows } = await kit.pool.query<{ id: string; status: string; changed_at: Date }>(
      'select id, status, changed_at from tasks where project_id = $1 and changed_at > created_at',
      [projectId],
    )
    assert.ok(rows.length > 6, 'tasks were changed')
    for (const { id, status, changed_at: at } of rows) {
      assert.equal(told.get(id), `${status} ${at.toISOString()}`, `${id} (MUSTER_TEST_SEED=${seed})`)
    }
  }
})

/** Transactions that change some tasks and are open for a while, so that they commit in another order. */
async function writeAtRandom(ids: readonly string[], random: Random): Promise<void> {
  const statuses = ['pending', 'in-progress', 'blocked', 'completed']
  for (let made = 0; made < 15; made++) {
    const client = await kit.pool.connect()
    try {
      await client.query('begin')
      await client.query(`update tasks set status = $2 where id = $1`, [random.pick(ids), random.pick(statuses)])
      await sleep(random.below(60))
      await client.query(random.below(6) === 0 ? 'rollback' : 'commit')
    } finally {
      client.release()
    }
  }
}
