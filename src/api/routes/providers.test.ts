import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { dumpRows } from '../../../test/kit/database.ts'
import { openProviderKey, openSecretOptions, sealOldOptions, upsertProvider } from '../../models/providers.ts'
import { createCipher } from '../../secrets/cipher.ts'

const kit = await createTestApp()
const CANARY = 'sk-canary-0123456789abcdef'

test('a provider is stored with its key sealed; the key is never answered', async () => {
  const made = await kit.call('POST /api/providers', {
    body: {
      name: 'acme',
      kind: 'openai-compatible',
      base_url: 'http://127.0.0.1:8000/v1',
      api_key: CANARY,
      prices: { 'big-1': { input: 2.5, output: 10 } },
      options: { organisation: 'x' },
    },
  })
  assert.equal(made.status, 201)
  assert.equal(made.body.has_api_key, true)
  assert.equal(made.body.source, 'api')
  for (const route of ['GET /api/providers', 'GET /api/providers/acme', 'GET /api/audit']) {
    assert.ok(!(await kit.call(route)).text.includes(CANARY), route)
  }
  assert.ok(!made.text.includes(CANARY))
  const dump = JSON.stringify(await dumpRows(kit.pool))
  assert.ok(!dump.includes(CANARY))
  assert.ok(!dump.includes(Buffer.from(CANARY).toString('hex')))
  assert.equal(await openProviderKey(kit.pool, kit.cipher, 'acme'), CANARY)
})

test('a patch leaves fields that it does not name; null removes a field', async () => {
  const patched = await kit.call('PATCH /api/providers/acme', { body: { prices: {} } })
  assert.equal(patched.body.has_api_key, true)
  assert.equal(patched.body.base_url, 'http://127.0.0.1:8000/v1')
  assert.deepEqual(patched.body.prices, {})
  assert.deepEqual(patched.body.options, { organisation: 'x' })
  const cleared = await kit.call('PATCH /api/providers/acme', { body: { api_key: null, base_url: null } })
  assert.equal(cleared.body.has_api_key, false)
  assert.equal(cleared.body.base_url, null)
  const again = await kit.call('PATCH /api/providers/acme', { body: { api_key: 'another' } })
  assert.equal(again.body.has_api_key, true)
  assert.equal(await openProviderKey(kit.pool, kit.cipher, 'acme'), 'another')
})

test('headers and access tokens among the options are sealed, shown by name alone, and kept by other patches', async () => {
  const options = { headers: { 'x-gateway': CANARY }, access_token: `${CANARY}-token`, project: 'p' }
  const made = await kit.call('POST /api/providers', { body: { name: 'gated', kind: 'google-vertex', options } })
  assert.equal(made.status, 201, made.text)
  const shown = { options: { project: 'p' }, header_names: ['x-gateway'], has_access_token: true }
  const shownOf = ({ options, header_names, has_access_token }: Record<string, unknown>) => ({
    options,
    header_names,
    has_access_token,
  })
  assert.deepEqual(shownOf(made.body), shown)
  const opened = () => openSecretOptions(kit.pool, kit.cipher, 'gated')
  const { project: _, ...secret } = options
  assert.deepEqual(await opened(), secret)
  const patch = (body: unknown) => kit.call('PATCH /api/providers/gated', { body })
  const kept = await patch({ options: { project: 'q' } })
  assert.deepEqual(shownOf(kept.body), { ...shown, options: { project: 'q' } })
  assert.deepEqual(await opened(), secret)
  for (const route of ['GET /api/providers', 'GET /api/providers/gated', 'GET /api/audit']) {
    assert.ok(!(await kit.call(route)).text.includes(CANARY), route)
  }
  assert.ok(!JSON.stringify(await dumpRows(kit.pool)).includes(CANARY))
  await patch({ options: { headers: { 'x-other': 'of another gateway' } } })
  assert.deepEqual(await opened(), { ...secret, headers: { 'x-other': 'of another gateway' } })
  const bare = await patch({ options: { headers: {}, access_token: null } })
  assert.deepEqual(shownOf(bare.body), { options: {}, header_names: [], has_access_token: false })
  assert.deepEqual(await opened(), {})
})

test('headers that an earlier release kept in clear are not answered, and are sealed by the next start', async () => {
  await kit.pool.query(`insert into providers (name, kind, base_url, options) values ('old', 'openai', null, $1)`, [
    JSON.stringify({ headers: { 'x-gateway': CANARY }, api: 'chat' }),
  ])
  const answer = async () => (await kit.call('GET /api/providers/old')).body
  assert.deepEqual((await answer()).header_names, ['x-gateway'])
  assert.deepEqual((await answer()).options, { api: 'chat' })
  assert.deepEqual(await openSecretOptions(kit.pool, kit.cipher, 'old'), { headers: { 'x-gateway': CANARY } })
  await Promise.all([sealOldOptions(kit.pool, kit.cipher), sealOldOptions(kit.pool, kit.cipher)])
  assert.ok(!JSON.stringify(await dumpRows(kit.pool)).includes(CANARY))
  assert.deepEqual(await openSecretOptions(kit.pool, kit.cipher, 'old'), { headers: { 'x-gateway': CANARY } })
  assert.deepEqual((await answer()).header_names, ['x-gateway'])
})

test('a sealed key moved to another provider, or opened with another secret key, is unreadable', async () => {
  for (const name of ['one', 'two']) {
    await kit.call('POST /api/providers', { body: { name, kind: 'openai', api_key: `key of ${name}` } })
  }
  await assert.rejects(openProviderKey(kit.pool, createCipher('another secret key'), 'one'))
  await kit.pool.query(
    `update providers set sealed_api_key = (select sealed_api_key from providers where name = 'one') where name = 'two'`,
  )
  await assert.rejects(
    openProviderKey(kit.pool, kit.cipher, 'two'),
    (error: Error) => !error.message.includes('key of'),
  )
})

test('providers of the environment are kept up to date, but never replace a provider that a person made', async () => {
  const offer = (name: string, api_key: string) =>
    upsertProvider(kit.pool, kit.cipher, { name, kind: 'openai', api_key, source: 'environment' })
  await kit.call('POST /api/providers', { body: { name: 'openai', kind: 'openai', api_key: 'by a person' } })
  await offer('openai', 'from the environment')
  assert.equal(await openProviderKey(kit.pool, kit.cipher, 'openai'), 'by a person')
  await offer('fresh', 'first')
  await offer('fresh', 'rotated')
  assert.equal(await openProviderKey(kit.pool, kit.cipher, 'fresh'), 'rotated')
})

test('a provider is deleted, but not the built-in one', async () => {
  await upsertProvider(kit.pool, kit.cipher, { name: 'offline', kind: 'offline', source: 'built-in' })
  assert.equal((await kit.call('DELETE /api/providers/offline')).status, 409)
  assert.equal((await kit.call('DELETE /api/providers/acme')).status, 204)
  assert.equal((await kit.call('GET /api/providers/acme')).status, 404)
  assert.equal((await kit.call('DELETE /api/providers/acme')).status, 404)
})
