// A project that floods the server with slow requests slows down only its own requests.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { createTestPool } from '../../../test/kit/database.ts'
import type { Client } from '../../db/pool.ts'
import { newId } from '../../kernel/id.ts'
import { MOST_WAITING_REQUESTS, placesOf } from './project-places.ts'

const kit = await createTestApp()
const address = await kit.app.listen({ port: 0, host: '127.0.0.1' })
const PLACES = placesOf(20)
const busy = await kit.createProject('busy')
const quiet = await kit.createProject('quiet')
const busyKey = await kit.createKey(busy.id, 'admin')
const quietKey = await kit.createKey(quiet.id, 'admin')
const watcher = createTestPool(kit.url, 1)

interface Sent {
  request: ClientRequest
  answer: Promise<{ status: number; retryAfter: string | undefined }>
}

function send(path: string, key: string, body?: object): Sent {
  const given = body === undefined ? '' : JSON.stringify(body)
  const headers = {
    authorization: `Bearer ${key}`,
    ...(body ? { 'content-type': 'application/json', 'content-length': given.length } : {}),
  }
  const method = body ? 'POST' : 'GET'
  const request = httpRequest(`${address}${path}`, { method, headers, agent: false })
  const answer = once(request, 'response').then(async ([response]: IncomingMessage[]) => {
    if (!response) return assert.fail()
    await once(response.resume(), 'end')
    return { status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] }
  })
  answer.catch(() => {})
  request.end(given)
  return { request, answer }
}

/** While the table is locked, every request that reads it waits on its database connection. */
async function whileLocked(table: string, work: () => Promise<void>): Promise<void> {
  const client: Client = await watcher.connect()
  try {
    await client.query(`begin; lock table ${table} in access exclusive mode`)
    await work()
  } finally {
    await client.query('rollback')
    client.release()
  }
}

/** Resolves once this many connections of the server wait for the lock. */
async function untilBlocked(count: number): Promise<void> {
  while (kit.pool.totalCount - kit.pool.idleCount < count) await new Promise(setImmediate)
}

const none = newId()
for (const { path, table, most, status = 200 } of [
  { path: 'agents', table: 'agents', most: PLACES },
  { path: 'objects', table: 'objects', most: 1 },
  { path: `objects/${none}/history`, table: 'objects', most: 1, status: 404 },
  { path: `agents/${none}/messages`, table: 'agents', most: 1, status: 404 },
  { path: 'flows', table: 'flows', most: 1 },
  { path: 'flow-runs', table: 'flow_runs', most: 1 },
  ...['output', 'tasks', 'trace', 'metrics'].map((part) => ({
    path: `flow-runs/${none}/${part}`,
    table: 'flow_runs',
    most: 1,
    status: 404,
  })),
]) {
  const shown = path.replace(none, ':id')
  test(`sixty slow reads of ${shown} take at most ${most} connections, and other projects are answered`, async () => {
    let flood: Sent[] = []
    await whileLocked(table, async () => {
      flood = Array.from({ length: 60 }, () => send(`/api/projects/${busy.id}/${path}`, busyKey.key))
      await untilBlocked(most)
      for (const other of ['runs', 'tasks', 'settings', 'keys']) {
        const { status } = await send(`/api/projects/${quiet.id}/${other}`, quietKey.key).answer
        assert.equal(status, 200, other)
      }
      // The instance admin reaches a project whose places are all taken.
      assert.equal((await kit.call(`GET /api/projects/${busy.id}/settings`)).status, 200)
      assert.equal(kit.pool.totalCount - kit.pool.idleCount, most)
      assert.equal(kit.pool.waitingCount, 0)
    })
    const answers = await Promise.all(flood.map(({ answer }) => answer))
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [status])
  })
}

test('sixty starts of flows are checked in the places of their project, and stored together', async () => {
  const root = { type: 'task', function: 'muster.chunk', args: { of: 'text', size: 2 } }
  const path = `/api/projects/${busy.id}`
  const { body: flow } = await kit.call<{ id: string }>(`POST ${path}/flows`, { body: { name: 'Chunks', root } })
  let flood: Sent[] = []
  await whileLocked('flows', async () => {
    flood = Array.from({ length: 60 }, () => send(`${path}/flow-runs`, busyKey.key, { flow_id: flow.id }))
    await untilBlocked(PLACES)
    assert.equal((await send(`/api/projects/${quiet.id}/settings`, quietKey.key).answer).status, 200)
    assert.equal(kit.pool.totalCount - kit.pool.idleCount, PLACES)
  })
  const answers = await Promise.all(flood.map(({ answer }) => answer))
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [202])
})

test('a full queue refuses with 429, and a client that leaves makes room in it', async () => {
  let flood: Sent[] = []
  const path = `/api/projects/${busy.id}/agents`
  await whileLocked('agents', async () => {
    const full = PLACES + MOST_WAITING_REQUESTS
    flood = Array.from({ length: full + 1 }, () => send(path, busyKey.key))
    const refused = await Promise.race(flood.map(({ answer }) => answer))
    assert.deepEqual(refused, { status: 429, retryAfter: '1' })
    assert.equal((await send(path, busyKey.key).answer).status, 429)
    for (const { request } of flood.slice(-50)) request.destroy()
    // Nothing tells the test when the server notices the closed connections.
    for (;;) {
      const more = send(path, busyKey.key)
      const first = await Promise.race([more.answer, new Promise((resolve) => setTimeout(resolve, 100, null))])
      flood.push(more)
      if (first === null) break
    }
  })
  const answers = await Promise.allSettled(flood.map(({ answer }) => answer))
  const statuses = answers.flatMap((each) => (each.status === 'fulfilled' ? [each.value.status] : []))
  assert.deepEqual([...new Set(statuses)].sort(), [200, 429])
  // All places are free again: as many requests as before work at once.
  await whileLocked('agents', async () => {
    flood = Array.from({ length: 10 }, () => send(path, busyKey.key))
    await untilBlocked(PLACES)
  })
  for (const { answer } of flood) assert.equal((await answer).status, 200)
})

test('a client that leaves while its statement runs does not free the place', async () => {
  const path = `/api/projects/${busy.id}/agents`
  await whileLocked('agents', async () => {
    for (let round = 0; round < 3; round++) {
      const flood = Array.from({ length: PLACES }, () => send(path, busyKey.key))
      await untilBlocked(PLACES)
      for (const { request } of flood) request.destroy()
    }
    assert.equal((await send(`/api/projects/${quiet.id}/runs`, quietKey.key).answer).status, 200)
    assert.equal(kit.pool.totalCount - kit.pool.idleCount, PLACES)
  })
  assert.equal((await send(path, busyKey.key).answer).status, 200)
})

test('triggers that wait for their runs hold no place', async () => {
  const agent = await kit.createAgent(busy.id)
  const path = `/api/projects/${busy.id}/agents/${agent.id}/trigger`
  const headers = { authorization: `Bearer ${busyKey.key}`, 'content-type': 'application/json' }
  // This kit has no worker, so no run ends.
  const waiting = ['a', 'b'].flatMap((name) =>
    Array.from({ length: PLACES }, (_, place) => {
      const key: Record<string, string> = name === 'a' ? {} : { 'idempotency-key': `${name}${place}` }
      const request = httpRequest(`${address}${path}`, {
        method: 'POST',
        headers: { ...headers, ...key },
        agent: false,
      })
      request.on('error', () => {})
      request.end(JSON.stringify({ input: 'hi' }))
      return request
    }),
  )
  const countRuns = async (): Promise<number> =>
    (await kit.pool.query('select from agent_runs where project_id = $1', [busy.id])).rowCount ?? 0
  while ((await countRuns()) < waiting.length) await new Promise(setImmediate)
  assert.equal((await send(`/api/projects/${busy.id}/agents`, busyKey.key).answer).status, 200)
  for (const request of waiting) request.destroy()
})

test.after(() => watcher.end())
