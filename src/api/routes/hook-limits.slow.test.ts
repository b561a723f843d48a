// The rate limit of a hook, and the limit of a sender's address, which counts deliveries without proof.
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createTestApp, type TestApp } from '../../../test/kit/app.ts'
import { createHook, type MadeHook } from '../../../test/kit/hooks.ts'
import { newId } from '../../kernel/id.ts'

const LIMIT = 5
// The clock moves only when a test moves it.
mock.timers.enable({ apis: ['Date'], now: Date.now() })

interface Sent {
  status: number
  retryAfter: number
}

async function sendTo(kit: TestApp, id: string, token: string, address = '10.0.0.1'): Promise<Sent> {
  const answer = await kit.app.inject({
    method: 'POST',
    url: `/hooks/${id}`,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    remoteAddress: address,
    payload: '{}',
  })
  return { status: answer.statusCode, retryAfter: Number(answer.headers['retry-after'] ?? 0) }
}

async function burst(count: number, send: () => Promise<Sent>): Promise<Record<number, number>> {
  const answers = await Promise.all(Array.from({ length: count }, send))
  for (const { status, retryAfter } of answers) assert.equal(retryAfter >= 1, status === 429)
  return Object.fromEntries(
    [...Map.groupBy(answers, ({ status }) => status)].map(([status, those]) => [status, those.length]),
  )
}

async function prepare(): Promise<{ kit: TestApp; one: MadeHook; two: MadeHook }> {
  const kit = await createTestApp({ rateLimit: LIMIT })
  const { id } = await kit.createProject()
  return { kit, one: await createHook(kit, id), two: await createHook(kit, id) }
}

test('a hook that is flooded is limited; the address and other hooks keep their shares', async () => {
  const { kit, one, two } = await prepare()
  const project = await kit.createProject()
  const { key } = await kit.createKey(project.id, 'viewer')
  let sender = 0
  const flood = () => sendTo(kit, one.id, one.secret, `10.0.0.${(sender++ % 2) + 1}`)
  assert.deepEqual(await burst(LIMIT + 4, flood), { 202: LIMIT, 429: 4 })
  assert.deepEqual(await burst(LIMIT, () => sendTo(kit, two.id, two.secret)), { 202: LIMIT })
  assert.deepEqual(await burst(LIMIT, () => sendTo(kit, newId(), 'x')), { 404: LIMIT })
  assert.equal((await kit.call(`GET /api/projects/${project.id}`, { token: key })).status, 200)
  mock.timers.tick(1_000)
  assert.deepEqual(await burst(LIMIT, flood), { 202: LIMIT })
})

test('deliveries without proof count for their address and not for the hook', async () => {
  const { kit, one } = await prepare()
  assert.deepEqual(await burst(LIMIT + 3, () => sendTo(kit, one.id, 'wrong')), { 401: LIMIT, 429: 3 })
  assert.deepEqual(await burst(2, () => sendTo(kit, one.id, 'wrong', '10.0.0.2')), { 401: 2 })
  // The hook also works from the address from which somebody else guessed.
  assert.deepEqual(await burst(LIMIT, () => sendTo(kit, one.id, one.secret)), { 202: LIMIT })
})

test('guesses of ids are limited by address and cost the database no more than that', async () => {
  const { kit, one } = await prepare()
  assert.equal((await sendTo(kit, one.id, one.secret)).status, 202)
  for (let times = 0; times < LIMIT; times++) {
    assert.equal((await sendTo(kit, times % 2 === 0 ? newId() : 'nothing', 'x')).status, 404)
  }
  let queries = 0
  const { query } = kit.pool
  kit.pool.query = ((...args: Parameters<typeof query>) => {
    queries++
    return query.apply(kit.pool, args)
  }) as typeof query // counts the calls and is unchanged otherwise
  assert.deepEqual(await burst(20, () => sendTo(kit, newId(), 'x')), { 429: 20 })
  assert.equal(queries, 0)
  kit.pool.query = query
  // A hook that this process knows goes on working, and so does every other address.
  assert.equal((await sendTo(kit, one.id, one.secret)).status, 202)
  assert.equal((await sendTo(kit, newId(), 'x', '10.0.0.2')).status, 404)
})
