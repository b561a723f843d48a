import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { cookieOf } from '../../test/kit/people.ts'
import { createSignInLink } from '../identity/sign-in-links.ts'
import { ensureInstanceAdmin } from '../identity/users.ts'

const kit = await createTestApp({ signInLimit: 0 })

test('the instance admin comes by link, chooses a password, and signs in with it from then on', async () => {
  const admin = await ensureInstanceAdmin(kit.pool)
  assert.equal((await ensureInstanceAdmin(kit.pool)).id, admin.id)
  const link = await createSignInLink(kit.pool, admin.id)
  const cookie = cookieOf((await kit.call(`GET /sign-in/${link}`, { token: null })).headers)
  const me = await kit.call('GET /api/me', { cookie })
  assert.equal(me.body.instance_admin, true)
  assert.equal(me.body.has_password, false)
  const set = await kit.call('POST /api/auth/password', { cookie, body: { new_password: 'a password of mine' } })
  assert.equal(set.status, 204)
  assert.equal((await kit.call('GET /api/me', { cookie })).body.has_password, true)
  const again = await kit.call('POST /api/auth/sign-in', {
    token: null,
    body: { email: admin.email, password: 'a password of mine' },
  })
  assert.equal(again.status, 200, again.text)
  const mine = cookieOf(again.headers)
  assert.equal((await kit.call('GET /api/providers', { cookie: mine })).status, 200)
  assert.equal((await kit.call('POST /api/projects', { cookie: mine, body: { name: 'by a person' } })).status, 201)
})
