// Proof of the ownership of an account. Muster sends no mail, so anybody may hold an invitation link. An account that
// was made through one project's link must prove itself again with the next project's link, and the instance admin can
// give an account back to its owner.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Call, createTestApp, INSTANCE_ID, type TestApp } from '../../../test/kit/app.ts'
import { cookieOf } from '../../../test/kit/people.ts'
import { isKnownAddress, noteAddress } from '../../identity/known-addresses.ts'
import { pruneIdentity } from '../../identity/prune.ts'
import { newId } from '../../kernel/id.ts'

interface Failure {
  error: { code: string; message: string }
}
interface Person {
  id: string
  projects: { id: string }[]
}
interface ResetLink {
  user_id: string
  email: string
  reset_url: string
  expires_at: string
}

const kit = await createTestApp({ signInLimit: 0 })
const strangers = 'the choice of a stranger'
const owners = 'the choice of the owner'

const lastPart = (url: string): string => url.split('/').at(-1) ?? ''
const unique = (): string => `${newId().slice(-12)}@example.com`

async function invite(app: TestApp, projectId: string, email: string): Promise<string> {
  const { body } = await app.call<{ invitation_url: string }>(`POST /api/projects/${projectId}/members`, {
    body: { email, role: 'member' },
  })
  return lastPart(body.invitation_url)
}

const accept = (app: TestApp, link: string, body: unknown, how: Call = { token: null }) =>
  app.call<Person & Failure>(`POST /api/invitations/${link}/accept`, { ...how, body })

const signIn = (app: TestApp, email: string, password: string, from = '10.0.0.1') =>
  app.call('POST /api/auth/sign-in', { token: null, body: { email, password }, headers: { 'x-forwarded-for': from } })

const audited = async (path: string) =>
  (await kit.call<{ items: { action: string; actor: { type: string; id: string | null } }[] }>(path)).body.items

/** An account that a stranger made with the first project's link. */
async function taken(email: string): Promise<{ userId: string; cookie: string; projectId: string }> {
  const { id: projectId } = await kit.createProject('First')
  const made = await accept(kit, await invite(kit, projectId, email), { name: 'Stranger', password: strangers })
  assert.equal(made.status, 200, made.text)
  return { userId: made.body.id, cookie: cookieOf(made.headers), projectId }
}

test("an account made by one project's link gains nothing in another project until that project's link is used", async () => {
  const email = unique()
  const stranger = await taken(email)
  const second = await kit.createProject('Second')
  const link = await invite(kit, second.id, email)
  const me = await kit.call<Person>('GET /api/me', { cookie: stranger.cookie })
  assert.deepEqual(
    me.body.projects.map(({ id }) => id),
    [stranger.projectId],
  )
  assert.equal((await kit.call(`GET /api/projects/${second.id}`, { cookie: stranger.cookie })).status, 404)
  // A person who holds the link but not the account gains nothing either.
  for (const body of [{ name: 'Owner', password: owners }, { password: owners }]) {
    const refused = await accept(kit, link, body)
    assert.deepEqual([refused.status, refused.headers['set-cookie']], [403, undefined], refused.text)
    assert.match(refused.body.error.message, /the instance admin can reset it/)
  }
  const other = await taken(unique())
  assert.equal((await accept(kit, link, {}, { cookie: other.cookie })).status, 400)
  assert.equal((await accept(kit, link, { password: owners }, { cookie: other.cookie })).status, 403)
  // The audit names the person who tried; a try without a session is recorded under the system.
  const refusals = (await audited(`GET /api/projects/${second.id}/audit`)).filter(
    ({ action }) => action === 'member.join_refused',
  )
  assert.deepEqual(
    refusals.map(({ actor }) => actor),
    [
      { type: 'user', id: other.userId },
      { type: 'system', id: null },
      { type: 'system', id: null },
    ],
  )
})

test('a reset gives the account to the holder of the link, ends all earlier access, and is in the audit', async () => {
  const email = unique()
  const stranger = await taken(email)
  const second = await kit.createProject('Second')
  const invitation = await invite(kit, second.id, email)
  const reset = () => kit.call<ResetLink>(`POST /api/users/${stranger.userId}/reset`)
  const replaced = lastPart((await reset()).body.reset_url)
  const made = await reset()
  assert.deepEqual([made.status, made.body.user_id, made.body.email], [201, stranger.userId, email], made.text)
  const link = lastPart(made.body.reset_url)
  assert.ok(!(await kit.call('GET /api/audit')).text.includes(link))
  const choose = (token: string, cookie?: string) =>
    kit.call<Person>(`POST /api/resets/${token}/accept`, {
      ...(cookie ? { cookie } : { token: null }),
      body: { password: owners },
    })
  assert.equal((await kit.call(`GET /api/resets/${replaced}`, { token: null })).status, 404)
  assert.equal((await choose(replaced)).status, 404)
  const shown = await kit.call(`GET /api/resets/${link}`, { token: null })
  assert.deepEqual(shown.body, { email, expires_at: made.body.expires_at })
  // Nothing has changed until the link is used: a link that was made by mistake does no harm.
  assert.equal((await kit.call('GET /api/me', { cookie: stranger.cookie })).status, 200)

  const answers = await Promise.all([choose(link), choose(link), choose(link)])
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 404, 404])
  const owner = cookieOf(answers.find(({ status }) => status === 200)?.headers ?? {})
  assert.equal((await kit.call('GET /api/me', { cookie: stranger.cookie })).status, 401)
  assert.equal((await signIn(kit, email, strangers)).status, 401)
  assert.equal((await signIn(kit, email, owners)).status, 200)
  assert.equal((await kit.call('GET /api/me', { cookie: owner })).body.id, stranger.userId)
  assert.equal((await accept(kit, invitation, {}, { cookie: owner })).status, 200)

  const entries = await audited('GET /api/audit?limit=50')
  const by = (action: string) => entries.find((entry) => entry.action === action)?.actor
  assert.deepEqual(by('user.reset'), { type: 'instance_admin', id: INSTANCE_ID })
  assert.deepEqual(by('user.reset_used'), { type: 'user', id: stranger.userId })
})

test('a reset link lapses after a day, is made by the instance admin alone, and only for existing accounts', async () => {
  const { userId, projectId } = await taken(unique())
  const { key } = await kit.createKey(projectId, 'admin')
  const path = `POST /api/users/${userId}/reset`
  assert.equal((await kit.call(path, { token: key })).status, 403)
  for (const id of [newId(), 'nobody', '%00']) assert.equal((await kit.call(`POST /api/users/${id}/reset`)).status, 404)
  const { body } = await kit.call<ResetLink>(path)
  await kit.clock.advance(24 * 3_600_000 + 1_000)
  const late = { token: null, body: { password: owners } }
  assert.equal((await kit.call(`POST /api/resets/${lastPart(body.reset_url)}/accept`, late)).status, 404)
})

test('an invitation does not tell whether its address has an account', async () => {
  const { id } = await kit.createProject()
  const [known, unknown] = [unique(), unique()]
  await taken(known)
  const invited = async (email: string) => {
    const body = { email, role: 'member' }
    const answer = await kit.call<Record<string, unknown>>(`POST /api/projects/${id}/members`, { body })
    const { id: memberId, invitation_url, invitation_expires_at, created_at, email: shown, ...rest } = answer.body
    assert.equal(shown, email)
    assert.ok(memberId && invitation_expires_at && created_at)
    return { rest, link: lastPart(String(invitation_url)) }
  }
  const [first, second] = [await invited(known), await invited(unknown)]
  assert.deepEqual(first.rest, second.rest, 'the admin who invites learns nothing either')
  assert.deepEqual([first.rest.user_id, first.rest.name, first.rest.status], [null, null, 'invited'])
  const listed = await kit.call<{ items: Record<string, unknown>[] }>(`GET /api/projects/${id}/members`)
  for (const { user_id, name } of listed.body.items) assert.deepEqual([user_id, name], [null, null])
  const links = [first.link, second.link]
  const shown = await Promise.all(links.map((link) => kit.call(`GET /api/invitations/${link}`, { token: null })))
  for (const { body } of shown) {
    assert.deepEqual(Object.keys(body).toSorted(), ['email', 'expires_at', 'project', 'role'])
  }
  for (const body of [{}, { password: 'some guess' }, { name: 'Somebody' }]) {
    const [one, other] = await Promise.all(links.map((link) => accept(kit, link, body)))
    assert.deepEqual([one?.status, one?.text], [other?.status, other?.text], JSON.stringify(body))
    assert.ok((one?.status ?? 0) >= 400)
  }
})

test('tries at one password are counted together on all routes', async () => {
  const app = await createTestApp({ signInLimit: 6, trustProxy: ['127.0.0.1'] })
  const email = unique()
  const first = await app.createProject()
  const made = await accept(app, await invite(app, first.id, email), { name: 'Owner', password: owners })
  const cookie = cookieOf(made.headers)
  const second = await app.createProject()
  const link = await invite(app, second.id, email)
  let address = 0
  const from = () => ({ 'x-forwarded-for': `10.1.0.${++address}` })
  const doors = [
    () => signIn(app, email.toUpperCase(), 'guess', from()['x-forwarded-for']),
    () => accept(app, link, { password: 'some guess' }, { token: null, headers: from() }),
    () => accept(app, link, { name: 'Me', password: 'some guess' }, { token: null, headers: from() }),
    () =>
      app.call('POST /api/auth/password', {
        cookie,
        headers: from(),
        body: { current_password: 'guess', new_password: 'long enough' },
      }),
  ]
  // The first of the six requests made the account.
  const statuses: number[] = []
  for (const door of [...doors, ...doors]) statuses.push((await door()).status)
  assert.deepEqual(statuses, [401, 403, 403, 403, 401, 429, 429, 429])
  for (const door of doors) assert.equal((await door()).status, 429)
  const { rows } = await app.pool.query<{ action: string; n: number }>(
    `select action, count(*)::integer as n from audit_log where action like '%refused' group by action order by action`,
  )
  assert.deepEqual(rows, [
    { action: 'member.join_refused', n: 2 },
    { action: 'user.password_refused', n: 1 },
    { action: 'user.sign_in_refused', n: 2 },
  ])
})

test('strangers who use up the tries of an account do not lock its owner out', async () => {
  const app = await createTestApp({ signInLimit: 5, trustProxy: ['127.0.0.1'] })
  const email = unique()
  const { id } = await app.createProject()
  const joined = await accept(
    app,
    await invite(app, id, email),
    { name: 'Owner', password: owners },
    { token: null, headers: { 'x-forwarded-for': '2001:db8:0:7::1' } },
  )
  assert.equal(joined.status, 200)
  const statuses: number[] = []
  for (let guess = 1; guess <= 7; guess++) {
    statuses.push((await signIn(app, email, 'guess', `10.2.0.${guess}`)).status)
  }
  assert.deepEqual(statuses.slice(-2), [429, 429])
  assert.equal((await signIn(app, email, owners, '10.2.0.99')).status, 429)
  // The owner signs in from another address of the same network; the owner's own tries are limited, too.
  const home = '2001:db8:0:7:9::2'
  assert.equal((await signIn(app, email, owners, home)).status, 200)
  const own: number[] = []
  for (let guess = 1; guess <= 5; guess++) own.push((await signIn(app, email, 'guess', home)).status)
  assert.equal(own.at(-1), 429)
})

test('at most fifty addresses of a person are remembered, each for half a year', async () => {
  const email = unique()
  const { userId } = await taken(email)
  for (let number = 0; number < 60; number++) {
    await noteAddress(kit.pool, userId, `10.3.0.${number}`)
    await kit.clock.advance(1_000)
  }
  assert.equal(await isKnownAddress(kit.pool, email, '10.3.0.59'), true)
  assert.equal(await isKnownAddress(kit.pool, email, '10.3.0.9'), false)
  await pruneIdentity(kit.pool)
  assert.equal(await isKnownAddress(kit.pool, email, '10.3.0.59'), true)
  await kit.clock.advance(181 * 86_400_000)
  await pruneIdentity(kit.pool)
  assert.equal(await isKnownAddress(kit.pool, email, '10.3.0.59'), false)
})
