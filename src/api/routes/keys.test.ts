import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { dumpRows } from '../../../test/kit/database.ts'
import { createKeyCache } from '../../identity/key-cache.ts'
import { sha256 } from '../../secrets/hash.ts'

const kit = await createTestApp()
const project = await kit.createProject()
const base = `/api/projects/${project.id}`

const use = async (key: string): Promise<number> => (await kit.call(`GET ${base}`, { token: key })).status

test('a key is shown once, works, and only its hash is stored', async () => {
  const { id, key } = await kit.createKey(project.id, 'viewer', 'shown once')
  assert.equal(await use(key), 200)
  const list = await kit.call(`GET ${base}/keys`)
  assert.ok(list.text.includes(id))
  assert.ok(!list.text.includes(key))
  const dump = JSON.stringify(await dumpRows(kit.pool))
  assert.ok(!dump.includes(key))
  assert.ok(dump.includes(sha256(key).toString('hex')))
})

test('a revoked key stops working at once here and is no longer listed', async () => {
  const { id, key } = await kit.createKey(project.id, 'viewer')
  assert.equal(await use(key), 200)
  assert.equal((await kit.call(`DELETE ${base}/keys/${id}`)).status, 204)
  assert.equal(await use(key), 401)
  assert.ok(!(await kit.call(`GET ${base}/keys`)).text.includes(id))
  assert.equal((await kit.call(`DELETE ${base}/keys/${id}`)).status, 404)
})

test('a key that another process revoked works here for two seconds at most', async () => {
  const { id, key } = await kit.createKey(project.id, 'viewer')
  let nowMs = 1_000_000
  const cache = createKeyCache(kit.pool, () => nowMs)
  assert.equal((await cache.find(key))?.id, id)
  await kit.pool.query('update api_keys set revoked_at = now() where id = $1', [id])
  nowMs += 1_999
  assert.equal((await cache.find(key))?.id, id)
  nowMs += 2
  assert.equal(await cache.find(key), null)
})

test('a key stops working when it expires', async () => {
  const expires_at = new Date(Date.now() + 3_600_000).toISOString()
  const made = await kit.call<{ key: string; expires_at: string }>(`POST ${base}/keys`, {
    body: { name: 'brief', role: 'viewer', expires_at },
  })
  assert.equal(made.body.expires_at, expires_at)
  const cache = createKeyCache(kit.pool)
  assert.ok(await cache.find(made.body.key))
  await kit.clock.advance(3_600_001)
  assert.equal(await createKeyCache(kit.pool).find(made.body.key), null)
})

test('an instant with an offset is stored as the same instant in UTC', async () => {
  const made = await kit.call<{ expires_at: string }>(`POST ${base}/keys`, {
    body: { name: 'offset', role: 'viewer', expires_at: '2099-01-01T02:00:00+02:00' },
  })
  assert.equal(made.body.expires_at, '2099-01-01T00:00:00.000Z')
})

test('the use of a key is noted, at most once a minute', async () => {
  const { id, key } = await kit.createKey(project.id, 'viewer')
  const lastUsed = async (): Promise<Date | null> =>
    (await kit.pool.query('select last_used_at from api_keys where id = $1', [id])).rows[0].last_used_at
  assert.equal(await lastUsed(), null)
  await createKeyCache(kit.pool).find(key)
  const first = await lastUsed()
  assert.ok(first)
  await createKeyCache(kit.pool).find(key)
  assert.deepEqual(await lastUsed(), first)
  await kit.clock.advance(61_000)
  await createKeyCache(kit.pool).find(key)
  assert.notDeepEqual(await lastUsed(), first)
})

test('a made-up key never reaches the database', async () => {
  let asked = 0
  const cache = createKeyCache({
    query: async () => {
      asked++
      throw new Error('must not be asked')
    },
  })
  assert.equal(await cache.find(`mk_${'a'.repeat(49)}`), null)
  assert.equal(asked, 0)
})

test('keys of a deleted project stop working at once', async () => {
  const doomed = await kit.createProject()
  const { key } = await kit.createKey(doomed.id, 'admin')
  assert.equal((await kit.call(`DELETE /api/projects/${doomed.id}`, { token: key })).status, 204)
  assert.equal((await kit.call(`GET /api/projects/${doomed.id}`, { token: key })).status, 401)
})
