import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { pruneIdempotencyKeys } from './idempotency.ts'

const kit = await createTestApp()
const project = await kit.createProject()
const other = await kit.createProject()
const path = `POST /api/projects/${project.id}/keys`
const body = { name: 'k', role: 'viewer' }
const withKey = (key: string) => ({ body, headers: { 'idempotency-key': key } })

const keysIn = async (projectId: string): Promise<number> => {
  const { rows } = await kit.pool.query('select count(*) as count from api_keys where project_id = $1', [projectId])
  return rows[0].count
}

test('the same key and body give the same answer, to the byte, and one row', async () => {
  const before = await keysIn(project.id)
  const first = await kit.call(path, withKey('once'))
  const again = await kit.call(path, withKey('once'))
  assert.equal(first.status, 201)
  assert.equal(again.status, 201)
  assert.equal(again.text, first.text)
  assert.equal(again.headers['idempotency-replayed'], 'true')
  assert.equal(await keysIn(project.id), before + 1)
})

test('a body with its properties in another order is the same body', async () => {
  const first = await kit.call(path, withKey('order'))
  const again = await kit.call(path, { body: { role: 'viewer', name: 'k' }, headers: { 'idempotency-key': 'order' } })
  assert.equal(again.text, first.text)
})

test('another body under the same key is refused', async () => {
  await kit.call(path, withKey('mismatch'))
  const before = await keysIn(project.id)
  const answer = await kit.call<{ error: { code: string } }>(path, {
    body: { ...body, name: 'other' },
    headers: { 'idempotency-key': 'mismatch' },
  })
  assert.equal(answer.status, 409)
  assert.equal(answer.body.error.code, 'IDEMPOTENCY_MISMATCH')
  assert.equal(await keysIn(project.id), before)
})

test('twenty requests at once with one key wait for the first and get its answer', async () => {
  const before = await keysIn(project.id)
  const answers = await Promise.all(Array.from({ length: 20 }, () => kit.call(path, withKey('twenty'))))
  assert.deepEqual(new Set(answers.map((answer) => answer.status)), new Set([201]))
  assert.equal(new Set(answers.map((answer) => answer.text)).size, 1)
  assert.equal(await keysIn(project.id), before + 1)
})

test('without the header each request makes its own row', async () => {
  const before = await keysIn(project.id)
  await Promise.all(Array.from({ length: 3 }, () => kit.call(path, { body })))
  assert.equal(await keysIn(project.id), before + 3)
})

test('another project and another route have keys of their own', async () => {
  const here = await kit.call<{ id: string }>(path, withKey('scope'))
  const there = await kit.call<{ id: string }>(`POST /api/projects/${other.id}/keys`, withKey('scope'))
  const elsewhere = await kit.call<{ id: string }>('POST /api/projects', {
    body: { name: 'p' },
    headers: { 'idempotency-key': 'scope' },
  })
  assert.equal(new Set([here.body.id, there.body.id, elsewhere.body.id]).size, 3)
})

test('a request that failed leaves its key free', async () => {
  const refused = await kit.call(path, {
    body: { ...body, expires_at: '2001-01-01T00:00:00Z' },
    headers: { 'idempotency-key': 'failed' },
  })
  assert.equal(refused.status, 400)
  assert.equal((await kit.call(path, withKey('failed'))).status, 201)
})

test('the stored answer is sealed: a dump does not show the key it created', async () => {
  const answer = await kit.call<{ key: string }>(path, withKey('sealed'))
  const { rows } = await kit.pool.query('select sealed_answer from idempotency_keys where key = $1', ['sealed'])
  assert.ok(rows[0].sealed_answer.length > 0)
  assert.ok(!rows[0].sealed_answer.includes(answer.body.key))
})

test('after a day the key is free again, even if its row is not pruned yet', async () => {
  const first = await kit.call<{ id: string }>(path, withKey('day'))
  await kit.clock.advance(24 * 3_600_000 + 1_000)
  const second = await kit.call<{ id: string }>(path, withKey('day'))
  assert.notEqual(second.body.id, first.body.id)
  await kit.clock.advance(24 * 3_600_000 + 1_000)
  await pruneIdempotencyKeys(kit.pool)
  const { rows } = await kit.pool.query('select count(*) as count from idempotency_keys')
  assert.equal(rows[0].count, 0)
})
