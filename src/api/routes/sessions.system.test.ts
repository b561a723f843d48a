// Sign-in and sessions through the real routes: links, invitations, passwords, the cookie and the origins that may
// write with it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { dumpRows } from '../../../test/kit/database.ts'
import { cookieOf, signInByLink } from '../../../test/kit/people.ts'
import { createSignInLink } from '../../identity/sign-in-links.ts'
import { sha256 } from '../../secrets/hash.ts'

const kit = await createTestApp({ signInLimit: 0 })
const project = await kit.createProject('The project')
const password = 'correct horse battery'

async function join(email: string, role = 'admin'): Promise<{ cookie: string; memberId: string }> {
  const invited = await kit.call<{ id: string; invitation_url: string }>(`POST /api/projects/${project.id}/members`, {
    body: { email, role },
  })
  const token = invited.body.invitation_url.split('/').at(-1)
  const joined = await kit.call(`POST /api/invitations/${token}/accept`, {
    token: null,
    body: { name: 'Somebody', password },
  })
  assert.equal(joined.status, 200, joined.text)
  return { cookie: cookieOf(joined.headers), memberId: invited.body.id }
}

const signIn = (email: string, secret = password) =>
  kit.call<{ error: { code: string } }>('POST /api/auth/sign-in', { token: null, body: { email, password: secret } })

test('an invitation can be read, is accepted once, and signs its person in', async () => {
  const invited = await kit.call<{ invitation_url: string }>(`POST /api/projects/${project.id}/members`, {
    body: { email: 'first@example.com', role: 'member' },
  })
  const token = invited.body.invitation_url.split('/').at(-1)
  const shown = await kit.call<Record<string, unknown>>(`GET /api/invitations/${token}`, { token: null })
  assert.equal(shown.body.email, 'first@example.com')
  const accept = () =>
    kit.call<{ projects: unknown[] }>(`POST /api/invitations/${token}/accept`, {
      token: null,
      body: { name: 'First', password },
    })
  const answers = await Promise.all([accept(), accept(), accept()])
  const statuses = answers.map((answer) => answer.status).toSorted()
  assert.equal(statuses.filter((status) => status === 200).length, 1, statuses.join())
  const accepted = answers.find((answer) => answer.status === 200)
  assert.deepEqual(accepted?.body.projects, [{ id: project.id, name: 'The project', role: 'member' }])
  assert.equal((await accept()).status, 404)
  const me = await kit.call('GET /api/me', { cookie: cookieOf(accepted?.headers ?? {}) })
  assert.equal(me.body.email, 'first@example.com')
})

test('an invitation lapses after seven days', async () => {
  const invited = await kit.call<{ invitation_url: string }>(`POST /api/projects/${project.id}/members`, {
    body: { email: 'late@example.com', role: 'member' },
  })
  await kit.clock.advance(7 * 86_400_000 + 1_000)
  const path = `/api/invitations/${invited.body.invitation_url.split('/').at(-1)}`
  assert.equal((await kit.call(`GET ${path}`, { token: null })).status, 404)
  const late = await kit.call(`POST ${path}/accept`, { token: null, body: { name: 'Late', password } })
  assert.equal(late.status, 404)
})

test('an invitation to an address with an account does not take over the account', async () => {
  await join('known@example.com')
  const second = await kit.createProject('Second')
  const invited = await kit.call<{ invitation_url: string }>(`POST /api/projects/${second.id}/members`, {
    body: { email: 'KNOWN@example.com', role: 'viewer' },
  })
  const path = `/api/invitations/${invited.body.invitation_url.split('/').at(-1)}`
  const stranger = await kit.call(`POST ${path}/accept`, {
    token: null,
    body: { name: 'Thief', password: 'my own choice' },
  })
  assert.equal(stranger.status, 403)
  assert.equal((await signIn('known@example.com', 'my own choice')).status, 401)
  const owner = await kit.call<{ projects: unknown[] }>(`POST ${path}/accept`, { token: null, body: { password } })
  assert.equal(owner.status, 200)
  assert.equal(owner.body.projects.length, 2)
})

test('a wrong password and an unknown address are answered alike', async () => {
  await join('alike@example.com')
  const wrong = await signIn('alike@example.com', 'wrong password')
  const unknown = await signIn('nobody-at-all@example.com', 'wrong password')
  assert.equal(wrong.status, 401)
  assert.equal(wrong.text, unknown.text)
})

test('the cookie is HttpOnly, SameSite=Lax, and new at every sign-in, which ends the old session', async () => {
  await join('rotate@example.com')
  const first = await signIn('rotate@example.com')
  const header = String(first.headers['set-cookie'])
  assert.match(header, /HttpOnly/)
  assert.match(header, /SameSite=Lax/)
  assert.match(header, /Path=\//)
  const cookie = cookieOf(first.headers)
  const second = await kit.call('POST /api/auth/sign-in', { cookie, body: { email: 'rotate@example.com', password } })
  assert.notEqual(cookieOf(second.headers), cookie)
  assert.equal((await kit.call('GET /api/me', { cookie })).status, 401)
  assert.equal((await kit.call('GET /api/me', { cookie: cookieOf(second.headers) })).status, 200)
})

test('a planted session token is never adopted', async () => {
  await join('fixation@example.com')
  const planted = 'muster_session=planted-by-somebody-else'
  const answer = await kit.call('POST /api/auth/sign-in', {
    cookie: planted,
    body: { email: 'fixation@example.com', password },
  })
  assert.notEqual(cookieOf(answer.headers), planted)
  assert.equal((await kit.call('GET /api/me', { cookie: planted })).status, 401)
})

test('signing out ends the session', async () => {
  const { cookie } = await join('out@example.com')
  assert.equal((await kit.call('POST /api/auth/sign-out', { cookie })).status, 204)
  assert.equal((await kit.call('GET /api/me', { cookie })).status, 401)
})

test('a new password needs the old one and ends every other session', async () => {
  const { cookie } = await join('change@example.com')
  const elsewhere = cookieOf((await signIn('change@example.com')).headers)
  const change = (current_password?: string) =>
    kit.call('POST /api/auth/password', { cookie, body: { current_password, new_password: 'a new long one' } })
  assert.equal((await change()).status, 403)
  assert.equal((await change('wrong')).status, 403)
  assert.equal((await change(password)).status, 204)
  assert.equal((await kit.call('GET /api/me', { cookie })).status, 200)
  assert.equal((await kit.call('GET /api/me', { cookie: elsewhere })).status, 401)
  assert.equal((await signIn('change@example.com')).status, 401)
  assert.equal((await signIn('change@example.com', 'a new long one')).status, 200)
})

test('a session ends thirty days after it was last used', async () => {
  const { cookie } = await join('idle@example.com')
  await kit.clock.advance(29 * 86_400_000)
  assert.equal((await kit.call('GET /api/me', { cookie })).status, 200)
  await kit.clock.advance(29 * 86_400_000)
  assert.equal((await kit.call('GET /api/me', { cookie })).status, 200)
  await kit.clock.advance(31 * 86_400_000)
  assert.equal((await kit.call('GET /api/me', { cookie })).status, 401)
})

test('a session ends ninety days after its sign-in, even if it is used', async () => {
  const { cookie } = await join('busy@example.com')
  const status = async () => (await kit.call('GET /api/me', { cookie })).status
  for (const days of [25, 25, 25, 14]) {
    await kit.clock.advance(days * 86_400_000)
    assert.equal(await status(), 200)
  }
  const list = await kit.call<{ items: { created_at: string; expires_at: string }[] }>('GET /api/auth/sessions', {
    cookie,
  })
  const [session] = list.body.items
  assert.equal(Date.parse(session?.expires_at ?? '') - Date.parse(session?.created_at ?? ''), 90 * 86_400_000)
  await kit.clock.advance(86_400_000 + 1_000)
  assert.equal(await status(), 401)
})

test('the cookie is read only under the name that belongs to the public address', async () => {
  const secure = await createTestApp({ publicUrl: new URL('https://muster.example') })
  const token = (cookie: string): string => cookie.split('=')[1] ?? ''
  for (const [app, name, other] of [
    [kit, 'muster_session', '__Host-muster_session'],
    [secure, '__Host-muster_session', 'muster_session'],
  ] as const) {
    const { cookie } = await signInByLink(app)
    assert.equal(cookie.split('=')[0], name)
    const me = (sent: string) => app.call('GET /api/me', { token: null, headers: { cookie: sent } })
    assert.equal((await me(cookie)).status, 200)
    assert.equal((await me(`${other}=${token(cookie)}`)).status, 401)
    assert.equal((await me(`${other}=planted; ${cookie}`)).status, 200)
  }
})

test('sessions are listed and ended one by one, only by their owner', async () => {
  const { cookie } = await join('list@example.com')
  const other = cookieOf((await signIn('list@example.com')).headers)
  const list = await kit.call<{ items: { id: string; current: boolean }[] }>('GET /api/auth/sessions', { cookie })
  assert.equal(list.body.items.length, 2)
  const otherId = list.body.items.find((session) => !session.current)?.id
  const stranger = await join('stranger@example.com')
  assert.equal((await kit.call(`DELETE /api/auth/sessions/${otherId}`, { cookie: stranger.cookie })).status, 404)
  assert.equal((await kit.call(`DELETE /api/auth/sessions/${otherId}`, { cookie })).status, 204)
  assert.equal((await kit.call('GET /api/me', { cookie: other })).status, 401)
})

test('a sign-in link works once and for an hour, and a HEAD does not spend it', async () => {
  const person = await signInByLink(kit)
  const token = await createSignInLink(kit.pool, person.userId)
  assert.equal((await kit.call(`HEAD /sign-in/${token}`, { token: null })).status, 405)
  const ahead = { token: null, headers: { 'sec-purpose': 'prefetch;prerender' } }
  assert.equal((await kit.call(`GET /sign-in/${token}`, ahead)).status, 400)
  const answers = await Promise.all([1, 2, 3].map(() => kit.call(`GET /sign-in/${token}`, { token: null })))
  assert.deepEqual(answers.map((answer) => answer.status).toSorted(), [303, 401, 401])
  assert.equal(answers.filter((answer) => answer.headers['set-cookie']).length, 1)
  const browser = { token: null, headers: { accept: 'text/html' } }
  assert.equal((await kit.call(`GET /sign-in/${token}`, browser)).headers.location, '/?sign_in=expired')
  const late = await createSignInLink(kit.pool, person.userId)
  await kit.clock.advance(3_600_001)
  assert.equal((await kit.call(`GET /sign-in/${late}`, { token: null })).status, 401)
})

test('an invitation is not accepted from the page of another site', async () => {
  const invited = await kit.call<{ invitation_url: string }>(`POST /api/projects/${project.id}/members`, {
    body: { email: 'elsewhere@example.com', role: 'viewer' },
  })
  const path = `POST /api/invitations/${invited.body.invitation_url.split('/').at(-1)}/accept`
  const accept = (origin: string) =>
    kit.call(path, { token: null, headers: { origin }, body: { name: 'Somebody', password } })
  assert.equal((await accept('http://evil.example')).status, 403)
  assert.equal((await accept('http://127.0.0.1:8080')).status, 200)
})

const origins: [string | undefined, number][] = [
  ['http://127.0.0.1:8080', 200],
  ['http://localhost:8080', 200],
  ['http://127.0.0.1:9999', 403],
  ['https://127.0.0.1:8080', 403],
  ['http://evil.example', 403],
  ['http://127.0.0.1:8080.evil.example', 403],
  ['null', 403],
  [undefined, 403],
]

for (const [origin, status] of origins) {
  test(`a write with the cookie and Origin ${origin} answers ${status}`, async () => {
    const person = await signInByLink(kit, { member: { projectId: project.id, role: 'admin' } })
    const headers: Record<string, string> = { cookie: person.cookie, 'content-type': 'application/json' }
    if (origin !== undefined) headers.origin = origin
    const answer = await kit.app.inject({
      method: 'PATCH',
      url: `/api/projects/${project.id}/settings`,
      headers,
      payload: '{"poll_interval":1000}',
    })
    assert.equal(answer.statusCode, status, answer.body)
    const read = await kit.app.inject({ url: `/api/projects/${project.id}`, headers: { cookie: person.cookie } })
    assert.equal(read.statusCode, 200)
  })
}

test('a role that is taken away does not count at the next request', async () => {
  const { cookie, memberId } = await join('demoted@example.com')
  await join('other-admin@example.com')
  const write = () => kit.call(`PATCH /api/projects/${project.id}`, { cookie, body: { name: 'The project' } })
  assert.equal((await write()).status, 200)
  await kit.call(`PATCH /api/projects/${project.id}/members/${memberId}`, { body: { role: 'viewer' } })
  assert.equal((await write()).status, 403)
  await kit.call(`DELETE /api/projects/${project.id}/members/${memberId}`)
  assert.equal((await write()).status, 404)
})

test('the rows of the database open no session, even with the hashes as tokens', async () => {
  const { cookie } = await join('dump@example.com')
  const token = cookie.split('=')[1] ?? ''
  const dump = JSON.stringify(await dumpRows(kit.pool))
  assert.ok(!dump.includes(token))
  assert.ok(!dump.includes(password))
  const hash = sha256(token).toString('hex')
  assert.ok(dump.includes(hash), 'the hash is stored')
  for (const forged of [hash, Buffer.from(hash, 'hex').toString('base64url')]) {
    assert.equal((await kit.call('GET /api/me', { cookie: `muster_session=${forged}` })).status, 401)
  }
})

test('guesses of passwords are limited by account and by address', async () => {
  const limited = await createTestApp({ signInLimit: 5 })
  const guess = (email: string) =>
    limited.call('POST /api/auth/sign-in', { token: null, body: { email, password: 'guess' } })
  const statuses: number[] = []
  for (let attempt = 0; attempt < 7; attempt++) statuses.push((await guess('victim@example.com')).status)
  assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429, 429])
  const answer = await guess('another@example.com')
  assert.equal(answer.status, 429)
  assert.ok(Number(answer.headers['retry-after']) >= 1)
})
