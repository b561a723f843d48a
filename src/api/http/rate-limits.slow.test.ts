import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { clientOf, createRateLimits } from './rate-limits.ts'

const LIMIT = 5

async function burst(count: number, send: () => Promise<{ status: number; headers: Record<string, unknown> }>) {
  const answers = await Promise.all(Array.from({ length: count }, send))
  return {
    ok: answers.filter((answer) => answer.status < 400).length,
    limited: answers.filter((a) => a.status === 429),
  }
}

test('a key has its own limit, answered 429 with Retry-After, and the instance admin has none', async () => {
  const kit = await createTestApp({ rateLimit: LIMIT, trustProxy: ['127.0.0.1'] })
  const project = await kit.createProject()
  const { key } = await kit.createKey(project.id, 'viewer')
  let address = 0
  const { ok, limited } = await burst(LIMIT + 3, () =>
    kit.call(`GET /api/projects/${project.id}`, { token: key, headers: { 'x-forwarded-for': `10.0.0.${address++}` } }),
  )
  assert.equal(ok, LIMIT)
  assert.equal(limited.length, 3)
  for (const answer of limited) assert.ok(Number(answer.headers['retry-after']) >= 1)
  const admin = await burst(LIMIT * 4, () => kit.call(`GET /api/projects/${project.id}`))
  assert.equal(admin.ok, LIMIT * 4)
})

test('a limited key, or a flood of made-up keys, does not limit another key at the same address', async () => {
  const kit = await createTestApp({ rateLimit: LIMIT })
  const project = await kit.createProject()
  const greedy = await kit.createKey(project.id, 'viewer')
  const modest = await kit.createKey(project.id, 'viewer')
  const get = (token: string) => kit.call(`GET /api/projects/${project.id}`, { token })
  assert.equal((await get(modest.key)).status, 200)
  assert.equal((await burst(LIMIT + 5, () => get(greedy.key))).limited.length, 5)
  await burst(LIMIT * 3, () => get('mk_made_up'))
  assert.equal((await get(modest.key)).status, 200)
})

test('an address is limited even if it makes up keys or forges X-Forwarded-For', async () => {
  const kit = await createTestApp({ rateLimit: LIMIT })
  let number = 0
  const { limited } = await burst(LIMIT + 4, () =>
    kit.call('GET /api/me', { token: `mk_made_up_${number}`, headers: { 'x-forwarded-for': `10.9.9.${number++}` } }),
  )
  assert.equal(limited.length, 4)
})

test('addresses of one IPv6 network of 64 bits are one client, in any notation', async () => {
  const kit = await createTestApp({ rateLimit: LIMIT, trustProxy: ['127.0.0.1'] })
  const from = (address: string) => kit.call('GET /api/me', { token: null, headers: { 'x-forwarded-for': address } })
  const within = [1, 2, 3, 4, 5, 6, 7].map((number) => `2001:db8:0:7:${number}::${number}`)
  within.push('2001:DB8::7:0:0:0:9')
  const answers = await Promise.all(within.map(from))
  assert.equal(answers.filter(({ status }) => status === 429).length, within.length - LIMIT)
  assert.equal((await from('2001:db8:0:8::1')).status, 401)
  assert.equal((await from('10.0.0.1')).status, 401)
  const mapped = await Promise.all([1, 2, 3, 4, 5, 6].map((number) => from(`::ffff:10.1.0.${number}`)))
  assert.ok(mapped.every(({ status }) => status === 401))
})

test('a connection that is closed already has no address, and is counted all the same', () => {
  assert.equal(clientOf(undefined), 'gone')
})

test('health checks are never limited', async () => {
  const kit = await createTestApp({ rateLimit: LIMIT })
  const { ok } = await burst(LIMIT * 4, () => kit.call('GET /readyz', { token: null }))
  assert.equal(ok, LIMIT * 4)
})

test('a window ends after its time, and any number of names takes bounded memory', () => {
  let nowMs = 0
  const limits = createRateLimits({ perSecond: 2, signInsPerMinute: 1, now: () => nowMs })
  limits.countKey('a')
  limits.countKey('a')
  assert.throws(() => limits.countKey('a'), /Too many/)
  nowMs = 999
  assert.throws(() => limits.countKey('a'), /Too many/)
  nowMs = 1_000
  limits.countKey('a')
  for (let number = 0; number < 200_000; number++) limits.countAddress(`10.0.${number}`)
})
