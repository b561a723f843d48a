// Secrets are sent through every route, in good and bad requests, and are then searched for in the logs, in all
// answers, in a dump of every table and in the database's own log and files.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { glob, readFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { runningUrl } from '../../src/db/embedded/running-url.ts'
import { atEnd } from '../kit/at-end.ts'
import { createTestPool, dumpRows } from '../kit/database.ts'
import { signDelivery } from '../kit/hooks.ts'
import { leaksOf } from '../kit/leaks.ts'
import { startMcpHttp } from '../kit/mcp-http.ts'
import { startBareServer } from '../kit/model-server.ts'
import { type Call, type Muster, postmasterPid, runMuster, startMuster } from '../kit/process.ts'
import { withClient } from '../kit/test-server.ts'
import { until } from '../kit/until.ts'
import { useEvals, useFlows, useGraph, useLayouts, useOrganisation } from '../kit/use-routes.ts'
import { useSupervisor } from '../kit/use-supervisor.ts'

const wholeFile = { after: atEnd }
/** A secret without the shape of any known key, so that no pattern can filter it. */
const canary = (what: string): string => `canary.${what}.${randomBytes(12).toString('hex')}`

const control = canary('control')
const secrets = {
  'admin token': canary('admin'),
  'secret key': canary('secret'),
  'provider key from the environment': canary('environment'),
  'provider key': canary('provider'),
  'provider key that replaced it': canary('replaced'),
  'provider key under an Idempotency-Key': canary('keyed'),
  'provider key of a refused request': canary('refused'),
  'provider key in an outage': canary('outage'),
  'provider key in a failure': canary('failure'),
  'provider key in invalid JSON': canary('malformed'),
  'header of an MCP server': canary('header'),
  'header of a provider': canary('provider-header'),
  password: canary('password'),
  'new password': canary('chosen'),
  'wrong password': canary('wrong'),
  'credentials of nobody': canary('nobody'),
  // The server makes these; each is shown once, in the answer that is named below.
  'project key': '',
  'project key under an Idempotency-Key': '',
  'key that was revoked': '',
  'session by link': '',
  'session by invitation': '',
  'session by password': '',
  'session by reset': '',
  'reset token': '',
  'secret of a hook': '',
  'secret of a hook after its rotation': '',
  'invitation token': '',
  'sign-in token': '',
  'database password': '',
  'database password of the superuser': '',
}
type SecretName = keyof typeof secrets

interface Heard {
  route: string
  status: number
  text: string
  shows: SecretName[]
}

let muster: Muster
let databaseUrl = ''
const heard: Heard[] = []
let dump = ''
let openInvitation = ''

before(async () => {
  muster = await startMuster(wholeFile, {
    env: {
      MUSTER_LOG_LEVEL: 'debug',
      MUSTER_ADMIN_TOKEN: secrets['admin token'],
      MUSTER_SECRET_KEY: secrets['secret key'],
      OPENAI_API_KEY: secrets['provider key from the environment'],
    },
  })
  databaseUrl = (await runningUrl(muster.dataDir)) ?? assert.fail()
  secrets['database password'] = new URL(databaseUrl).password
  secrets['database password of the superuser'] = (
    await readFile(join(muster.dataDir, 'postgres.password'), 'utf8')
  ).trim()
  secrets['sign-in token'] = muster.signInLink().split('/').at(-1) ?? ''
  const project = await useProjects()
  await useProviders()
  await useKeys(project)
  await usePeople(project)
  await useRuns(project)
  await useOrganisation(caller(), project)
  await useMcpServers(project)
  await useHooks(project)
  await useFlows(caller(), project)
  await useLayouts(caller(), project)
  await useEvals(caller(), project)
  await useSupervisor(caller(), project)
  await useEverythingElse(project)
  await failOnPurpose()
  await withClient(databaseUrl, async (db) => {
    dump = Object.entries(await dumpRows(db))
      .flatMap(([table, rows]) => rows.map((row) => `${table} ${row}`))
      .join('\n')
  })
})

test('every route of the API was used with success', async () => {
  const { body } = await muster.call<{ paths: Record<string, Record<string, unknown>> }>('GET /openapi.json')
  const used = heard.filter(({ status }) => status < 400).map(({ route }) => route.split('?')[0] ?? '')
  const unused = Object.entries(body.paths).flatMap(([path, methods]) => {
    const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
    const isUsed = (method: string): boolean =>
      used.some((route) => route.startsWith(`${method.toUpperCase()} `) && pattern.test(route.split(' ')[1] ?? ''))
    return Object.keys(methods).flatMap((method) => (isUsed(method) ? [] : [`${method} ${path}`]))
  })
  assert.deepEqual(unused, [])
  assert.ok(Object.keys(body.paths).length > 10)
})

test('the search finds planted words in every form, in the dump, the answers and the log', () => {
  assert.deepEqual(leaksOf(control, dump), ['clear', 'its end', 'escaped', 'hex', 'base64'])
  assert.ok(heard.some(({ text }) => leaksOf(control, text).includes('clear')))
  assert.ok(leaksOf(control, muster.stderr()).includes('clear'))
  for (const [name, value] of Object.entries(secrets)) assert.ok(value.length >= 16, `${name} is not known`)
})

test('no secret is in the logs', async () => {
  assert.match(muster.stderr(), /"level":"debug".*request answered/)
  assert.match(muster.stderr(), /a request failed/)
  assert.match(muster.stderr(), /a request could not be served/)
  requireNone('stderr', muster.stderr())
  // The sign-in link is printed on purpose; it has been used by now.
  requireNone('stdout', muster.stdout(), ['sign-in token'])
  const log = await readFile(join(muster.dataDir, 'postgres.log'), 'utf8')
  assert.match(log, /STATEMENT: /, 'the log of the database has no text of failed statements')
  requireNone('postgres.log', log)
})

test('the used sign-in link in the output gives no session', async () => {
  const again = await muster.call(`GET /sign-in/${secrets['sign-in token']}`, { token: null })
  assert.equal(again.status, 401)
  assert.deepEqual(again.headers.getSetCookie(), [])
})

test('no answer contains a secret, except the answer that shows it on purpose', () => {
  for (const { route, text, shows } of heard) requireNone(`the answer to ${route}`, text, shows)
  const shown = new Set(heard.flatMap(({ shows }) => shows))
  for (const name of shown)
    assert.ok(
      heard.some(({ text }) => leaksOf(secrets[name], text).length > 0),
      name,
    )
})

test('no secret is in a dump of the database, nor in its files', async () => {
  requireNone('the dump', dump)
  let bytes = 0
  let controls = 0
  for await (const file of glob(join(muster.dataDir, 'postgres/**'), { withFileTypes: true })) {
    if (!file.isFile()) continue
    const content = await readFile(join(file.parentPath, file.name)).catch(() => Buffer.alloc(0))
    bytes += content.length
    if (content.includes(control)) controls++
    for (const [name, value] of Object.entries(secrets)) {
      assert.equal(content.includes(value), false, `${file.parentPath}/${file.name} holds the ${name}`)
    }
  }
  assert.ok(bytes > 10_000_000 && controls > 0, `${bytes} bytes, the control in ${controls} files`)
})

test('no secret is in the environment or on the command line of the database', async (t) => {
  const pid = await postmasterPid(muster)
  const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => null)
  if (environment === null) return t.skip('the environment of a process cannot be read here')
  assert.match(environment, /PATH=/)
  requireNone('the environment of PostgreSQL', environment)
  requireNone('the command line of PostgreSQL', await readFile(`/proc/${pid}/cmdline`, 'utf8'))
})

test('hashes and sealed values from the database do not work in place of the secrets', async (t) => {
  const linkCommand = await runMuster(t, ['keys', 'link'], { dataDir: muster.dataDir, port: muster.port })
  const rows = await withClient(databaseUrl, async (db) => {
    const { rows: found } = await db.query<{ kind: string; value: Buffer }>(
      `select 'key' as kind, key_hash as value from api_keys where revoked_at is null
       union all select 'session', token_hash from auth.sessions
       union all select 'link', token_hash from auth.sign_in_links
       union all select 'invitation', invitation_hash from members where invitation_hash is not null
       union all select 'fingerprint', decode(secret_key_fingerprint, 'hex') from instance`,
    )
    return found
  })
  assert.deepEqual([...new Set(rows.map(({ kind }) => kind))].sort(), [
    'fingerprint',
    'invitation',
    'key',
    'link',
    'session',
  ])
  for (const { value } of rows) {
    for (const encoding of ['hex', 'base64', 'base64url'] as const) {
      const text = encodeURIComponent(value.toString(encoding))
      assert.equal((await muster.call('GET /api/me', { token: value.toString(encoding) })).status, 401)
      assert.equal((await muster.call('GET /api/me', { cookie: `muster_session=${text}` })).status, 401)
      assert.equal((await muster.call(`GET /sign-in/${text}`, { token: null })).status, 401)
      assert.equal((await muster.call(`GET /api/invitations/${text}`, { token: null })).status, 404)
    }
  }
  const hash = await withClient(databaseUrl, (db) =>
    db.query<{ password_hash: string }>(`select password_hash from auth.users where email = 'new@example.com'`),
  )
  const password = hash.rows[0]?.password_hash ?? assert.fail()
  const body = { email: 'new@example.com', password }
  assert.equal((await muster.call('POST /api/auth/sign-in', { token: null, body })).status, 401)

  // The right secrets do work, so the requests themselves were right.
  assert.equal((await muster.call('GET /api/me', { token: secrets['project key'] })).status, 200)
  const cookie = `muster_session=${secrets['session by reset']}`
  assert.equal((await muster.call('GET /api/me', { cookie })).status, 200)
  assert.equal((await muster.call(`GET /api/invitations/${openInvitation}`, { token: null })).status, 200)
  const link = new URL(linkCommand.stdout.trim()).pathname
  assert.equal((await muster.call(`GET ${link}`, { token: null })).status, 303)
})

function requireNone(where: string, text: string, except: readonly SecretName[] = []): void {
  for (const [name, value] of Object.entries(secrets)) {
    if (except.some((allowed) => secrets[allowed] === value)) continue
    assert.deepEqual(leaksOf(value, text), [], `${where} holds the ${name}`)
  }
}

/** Sends a request and remembers the whole answer, headers too. `shows` names the secrets that it shows on purpose. */
async function ask<Body = Record<string, unknown>>(route: string, call: Call = {}, ...shows: SecretName[]) {
  const answer = await muster.call<Body>(route, call)
  const text = `${JSON.stringify([...answer.headers])}\n${answer.text}`
  heard.push({ route, status: answer.status, text, shows })
  return answer
}

const caller = () => ({ ask, call: muster.call, word: control, databaseUrl })

async function useProjects(): Promise<string> {
  const { body } = await ask<{ id: string }>('POST /api/projects', { body: { name: control } })
  const encoded = [Buffer.from(control).toString('hex'), Buffer.from(`.${control}`).toString('base64')]
  for (const name of encoded) await ask('POST /api/projects', { body: { name } })
  await ask('GET /api/projects?limit=10')
  await ask(`GET /api/projects/${body.id}`)
  await ask(`PATCH /api/projects/${body.id}`, { body: { name: control } })
  await ask(`GET /api/projects/${body.id}/settings`)
  await ask(`PATCH /api/projects/${body.id}/settings`, { body: { poll_interval: 40_000 } })
  for (const verb of ['halt', 'unhalt']) await ask(`POST /api/projects/${body.id}/${verb}`)
  const doomed = await ask<{ id: string }>('POST /api/projects', { body: { name: 'doomed' } })
  await ask(`DELETE /api/projects/${doomed.body.id}`)
  return body.id
}

async function useProviders(): Promise<void> {
  const provider = (name: string, secret: SecretName, more = {}) => ({
    body: { name, kind: 'openai', api_key: secrets[secret], ...more },
  })
  await ask('POST /api/providers', provider('plain', 'provider key'))
  await ask('POST /api/providers', provider('plain', 'provider key of a refused request'))
  await ask('POST /api/providers', provider('other', 'provider key of a refused request', { kind: 'no such kind' }))
  await ask('POST /api/providers', { body: { name: 'x', kind: secrets['provider key of a refused request'] } })
  await ask('PATCH /api/providers/plain', { body: { api_key: secrets['provider key that replaced it'] } })
  const keyed = provider('keyed', 'provider key under an Idempotency-Key')
  for (let times = 0; times < 2; times++) {
    await ask('POST /api/providers', { ...keyed, headers: { 'idempotency-key': 'once' } })
  }
  await ask('POST /api/providers', { ...provider('mismatch', 'provider key'), headers: { 'idempotency-key': 'once' } })
  const options = { headers: { 'x-secret': secrets['header of a provider'] } }
  await ask('POST /api/providers', { body: { name: 'headed', kind: 'openai', options } })
  await ask('GET /api/providers')
  await ask('GET /api/providers/plain')
  await ask('GET /api/providers/openai')
  await ask('POST /api/providers', provider('tested', 'provider key', { base_url: 'http://127.0.0.1:1/v1' }))
  await ask('POST /api/providers/tested/test', { body: { model: 'any' } })
  await ask('POST /api/providers', provider('doomed', 'provider key'))
  await ask('DELETE /api/providers/doomed')
}

async function useKeys(project: string): Promise<void> {
  const route = `/api/projects/${project}/keys`
  type Made = { id: string; key: string }
  const make = async (name: string, secret: SecretName, headers = {}): Promise<Made> => {
    const { body } = await ask<Made>(`POST ${route}`, { body: { name, role: 'admin' }, headers }, secret)
    secrets[secret] = body.key
    return body
  }
  await make('plain', 'project key')
  for (let times = 0; times < 2; times++) {
    await make('keyed', 'project key under an Idempotency-Key', { 'idempotency-key': 'once' })
  }
  const revoked = await make('revoked', 'key that was revoked')
  await ask('GET /api/me', { token: revoked.key })
  await ask(`DELETE ${route}/${revoked.id}`)
  await ask('GET /api/me', { token: revoked.key })
  await ask(`GET ${route}`, { token: secrets['project key'] })
  await ask('GET /api/providers', { token: secrets['project key'] })
}

async function usePeople(project: string): Promise<void> {
  const link = await ask(`GET /sign-in/${secrets['sign-in token']}`, { token: null }, 'session by link')
  secrets['session by link'] = sessionOf(link.headers)
  const admin = `muster_session=${secrets['session by link']}`
  await ask('GET /api/me', { cookie: admin })
  await ask('GET /', { cookie: admin })

  const route = `/api/projects/${project}/members`
  type Invited = { id: string; invitation_url: string }
  const invite = (email: string) => ({ cookie: admin, body: { email, role: 'member' } })
  const invited = await ask<Invited>(`POST ${route}`, invite('new@example.com'), 'invitation token')
  const token = invited.body.invitation_url.split('/').at(-1) ?? ''
  secrets['invitation token'] = token
  await ask(`GET /invitations/${token}`, { token: null })
  await ask(`GET /api/invitations/${token}`, { token: null })
  const person = { name: 'New', password: secrets.password }
  const accept = `POST /api/invitations/${token}/accept`
  const joined = await ask(accept, { token: null, body: person }, 'session by invitation')
  secrets['session by invitation'] = sessionOf(joined.headers)
  await ask(`GET ${route}`)
  await ask(`PATCH ${route}/${invited.body.id}`, { body: { role: 'viewer' } })
  const withdrawn = await muster.call<Invited>(`POST ${route}`, invite('withdrawn@example.com'))
  await ask(`DELETE ${route}/${withdrawn.body.id}`, { cookie: admin })
  const open = await muster.call<Invited>(`POST ${route}`, invite('open@example.com'))
  openInvitation = open.body.invitation_url.split('/').at(-1) ?? ''

  const signIn = (password: string): Call => ({ token: null, body: { email: 'new@example.com', password } })
  await ask('POST /api/auth/sign-in', signIn(secrets['wrong password']))
  const cookie = `muster_session=${secrets['session by invitation']}`
  const change = { current_password: secrets['wrong password'], new_password: secrets['new password'] }
  await ask('POST /api/auth/password', { cookie, body: change })
  await ask('POST /api/auth/password', { cookie, body: { ...change, current_password: secrets.password } })
  const signedIn = await ask('POST /api/auth/sign-in', signIn(secrets['new password']), 'session by password')
  secrets['session by password'] = sessionOf(signedIn.headers)
  const { body } = await ask<{ items: { id: string; current: boolean }[] }>('GET /api/auth/sessions', { cookie })
  const other = body.items.find(({ current }) => !current) ?? assert.fail('there is one session only')
  assert.ok(other.id)
  await ask('POST /api/auth/sign-out', { cookie: admin })
  const third = await muster.call('POST /api/auth/sign-in', signIn(secrets['new password']))
  const ended = `muster_session=${sessionOf(third.headers)}`
  const mine = await muster.call<{ items: { id: string; current: boolean }[] }>('GET /api/auth/sessions', {
    cookie: ended,
  })
  const current = mine.body.items.find((session) => session.current) ?? assert.fail()
  await ask(`DELETE /api/auth/sessions/${current.id}`, { cookie: ended })
  await useReset(await ask(`GET ${route}`))
}

async function useReset(members: { body: unknown }): Promise<void> {
  const { items } = members.body as { items: { email: string; user_id: string }[] } // the answer of the list
  const { user_id } = items.find(({ email }) => email === 'new@example.com') ?? assert.fail()
  const made = await ask<{ reset_url: string }>(`POST /api/users/${user_id}/reset`, {}, 'reset token')
  secrets['reset token'] = made.body.reset_url.split('/').at(-1) ?? ''
  await ask(`GET /resets/${secrets['reset token']}`, { token: null })
  await ask(`GET /api/resets/${secrets['reset token']}`, { token: null })
  const body = { password: secrets['new password'] }
  const used = `POST /api/resets/${secrets['reset token']}/accept`
  const signedIn = await ask(used, { token: null, body }, 'session by reset')
  secrets['session by reset'] = sessionOf(signedIn.headers)
}

async function useRuns(project: string): Promise<void> {
  const path = `/api/projects/${project}`
  type Made = { id: string; status: string; pause_reason: string | null }
  const model = { provider: 'offline', name: 'offline' }
  const body = { name: control, model, tools: ['http_fetch'] }
  const agent = (await ask<Made>(`POST ${path}/agents`, { body })).body.id
  await ask(`GET ${path}/agents`)
  await ask(`GET ${path}/agents/${agent}`)
  await ask(`PATCH ${path}/agents/${agent}`, { body: { role: control } })
  const trigger = { input: 'Use http_fetch on https://nothing.invalid/', max_steps: 1 }
  const paused = (await ask<Made>(`POST ${path}/agents/${agent}/trigger`, { body: trigger })).body
  assert.equal(paused.pause_reason, 'step_limit')
  const run = `${path}/runs/${paused.id}`
  await ask(`GET ${path}/runs?agent_id=${agent}`)
  for (const part of ['', '/steps', '/events', '/waits', '/effects']) await ask(`GET ${run}${part}`)
  await ask(`POST ${run}/cancel`)
  await ask(`POST ${run}/resume`, { body: { max_steps: 1 } })
  await ask(`POST ${run}/fork`, { body: { after_step: 0 } })
  await useWaitingRun(path)
  await ask(`DELETE ${path}/agents/${agent}`)
  const task = (await ask<Made>(`POST ${path}/tasks`, { body: { title: control } })).body.id
  await ask(`GET ${path}/tasks`)
  await ask(`GET ${path}/tasks/${task}`)
  await ask(`PATCH ${path}/tasks/${task}`, { body: { status: 'completed', result: control } })
  await useGraph(caller(), path, task)
}

/** A provider whose quota is used up keeps a run waiting. */
async function useWaitingRun(path: string): Promise<void> {
  const url = await startBareServer((_, response) => void response.writeHead(402).end('{}'))
  const provider = { name: 'spent', kind: 'openai-compatible', base_url: `${url}/v1`, api_key: 'any' }
  await muster.call('POST /api/providers', { body: provider })
  const body = { name: `${control} waits`, model: { provider: 'spent', name: 'any' } }
  const agent = (await ask<{ id: string }>(`POST ${path}/agents`, { body })).body.id
  const { body: run } = await ask<{ id: string; waiting_for: string | null }>(`POST ${path}/agents/${agent}/trigger`, {
    body: { input: 'Wait.' },
  })
  assert.equal(run.waiting_for, 'provider spent')
  await ask(`POST ${path}/runs/${run.id}/try-now`)
  await ask(`POST ${path}/runs/${run.id}/cancel`)
}

async function useMcpServers(project: string): Promise<void> {
  const path = `/api/projects/${project}/mcp-servers`
  const { url } = await startMcpHttp()
  const headers = { 'x-secret': secrets['header of an MCP server'] }
  await ask(`POST ${path}`, { body: { name: 'fixture', url, headers } })
  await ask(`POST ${path}`, { body: { name: 'fixture', url, headers } })
  await ask(`GET ${path}`)
  await ask(`GET ${path}/fixture`)
  await ask(`POST ${path}/fixture/approve`)
  await ask(`GET /api/projects/${project}/tools`)
  await ask(`POST ${path}`, { body: { name: 'doomed', url, headers } })
  await ask(`DELETE ${path}/doomed`)
}

async function useHooks(project: string): Promise<void> {
  const model = { provider: 'offline', name: 'offline' }
  const agent = { name: 'hooked', trigger_type: 'webhook', model }
  const { body: made } = await muster.call<{ id: string }>(`POST /api/projects/${project}/agents`, { body: agent })
  const path = `/api/projects/${project}/agents/${made.id}/hooks`
  type Hook = { id: string; secret: string }
  const keyed = { body: { name: control }, headers: { 'idempotency-key': 'once' } }
  for (let times = 0; times < 2; times++) {
    const hook = await ask<Hook>(`POST ${path}`, keyed, 'secret of a hook')
    secrets['secret of a hook'] = hook.body.secret
  }
  await ask(`GET ${path}`)
  const { body } = await muster.call<{ items: Hook[] }>(`GET ${path}`)
  const id = body.items[0]?.id ?? assert.fail('there is no hook')
  const rotated = await ask<Hook>(`POST ${path}/${id}/rotate`, {}, 'secret of a hook after its rotation')
  secrets['secret of a hook after its rotation'] = rotated.body.secret

  const [old, current] = [secrets['secret of a hook'], secrets['secret of a hook after its rotation']]
  const payload = JSON.stringify({ note: control })
  for (const secret of [old, current]) {
    const signed = signDelivery(secret, payload)
    assert.equal((await ask(`POST /hooks/${id}`, { token: null, body: payload, headers: signed })).status, 202)
    assert.equal((await ask(`POST /hooks/${id}`, { token: secret, body: payload })).status, 202)
    // The secret is sent in a wrong place, and in a place in which it is not valid.
    await ask(`POST /hooks/${id}`, { token: secret, body: '{' })
    await ask(`POST /hooks/${secret}`, { token: secret, body: payload })
    await ask(`POST /hooks/${encodeURIComponent(secret)}?secret=${encodeURIComponent(secret)}`, { body: payload })
    await ask('GET /api/me', { token: secret })
  }
  await ask(`POST /hooks/${id}`, { token: secrets['credentials of nobody'], body: payload })
  await ask(`POST /hooks/${id}`, { token: secrets['admin token'], body: payload })
  const doomed = await muster.call<Hook>(`POST ${path}`, { body: { name: 'doomed' } })
  await ask(`DELETE ${path}/${doomed.body.id}`)
}

/** Audit, metrics and documents, and secrets in wrong places. */
async function useEverythingElse(project: string): Promise<void> {
  const nobody = secrets['credentials of nobody']
  const key = secrets['project key']
  await ask(`GET /api/projects/${project}/audit?limit=200`)
  for (const path of [
    `/api/home?since=${new Date(0).toISOString()}`,
    '/api/audit?limit=200',
    '/api/audit/verify',
    '/metrics',
    '/healthz',
    '/readyz',
    '/openapi.json',
    '/docs',
  ]) {
    await ask(`GET ${path}`)
  }
  await ask('GET /api/me', { headers: { 'x-request-id': control } })
  await ask('GET /api/me', { token: nobody })
  await ask('GET /api/me', { token: null, headers: { authorization: `Basic ${btoa(nobody)}` } })
  await ask('GET /api/me', { cookie: `muster_session=${nobody}` })
  for (const value of [nobody, key, secrets['provider key']]) {
    await ask(`GET /api/projects?cursor=${value}`)
    await ask(`GET /api/projects?api_key=${value}`)
    await ask(`GET /api/nothing/${value}?key=${value}`)
    await ask(`PUT /api/projects/${value}`)
    await ask(`GET /api/projects/${value}`)
    await ask(`GET /api/providers/${value}`)
    await ask(`GET /sign-in/${value}`, { token: null })
    await ask(`GET /api/invitations/${value}`, { token: null })
  }
  const malformed = secrets['provider key in invalid JSON']
  for (const body of [`{"api_key":"${malformed}`, `"${malformed}"`, `{"api_key":"${malformed}","api_key":1}`]) {
    await ask('POST /api/providers', { body })
  }
  await ask('POST /api/providers', { body: malformed, headers: { 'content-type': 'text/plain' } })
  await ask('POST /api/providers', { body: {}, headers: { 'idempotency-key': `${malformed} ä` } }).catch(() => {})
  for (const request of [
    `GET /${nobody} HTTP/9\r\n\r\n`,
    `${nobody}\r\n\r\n`,
    `GET / HTTP/1.1\r\nauthorization: ${nobody}${'x'.repeat(20_000)}\r\n\r\n`,
    `GET /%zz${nobody} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`,
  ]) {
    heard.push({ route: 'something that is no HTTP', status: 400, text: await sendRaw(request), shows: [] })
  }
}

/** The failures that are logged: a database that goes away during a request, and a bug. */
async function failOnPurpose(): Promise<void> {
  const provider = (secret: SecretName) => ({ body: { name: 'never', kind: 'openai', api_key: secrets[secret] } })
  const pool = createTestPool(databaseUrl, 2)
  try {
    const client = await pool.connect()
    await client.query('begin')
    await client.query('lock table providers in access exclusive mode')
    const cut = ask('POST /api/providers', provider('provider key in an outage'))
    const waiting = `select pid from pg_locks where not granted`
    await until(async () => (await pool.query(waiting)).rowCount === 1, 'the request waits')
    await pool.query(`select pg_terminate_backend(pid) from (${waiting}) as waiting`)
    assert.equal((await cut).status, 503)
    await client.query('rollback')
    client.release()

    await pool.query('alter table providers rename column sealed_api_key to lost')
    const failed = await ask('POST /api/providers', provider('provider key in a failure'))
    await pool.query('alter table providers rename column lost to sealed_api_key')
    assert.equal(failed.status, 500)
  } finally {
    await pool.end()
  }
}

function sessionOf(headers: Headers): string {
  const cookie = headers.getSetCookie().find((text) => text.startsWith('muster_session=')) ?? ''
  return cookie.split(';')[0]?.split('=')[1] ?? ''
}

function sendRaw(request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = createConnection(muster.port, '127.0.0.1', () => socket.write(request))
    socket.setEncoding('utf8').setTimeout(10_000, () => socket.destroy(new Error('no answer to a raw request')))
    socket.on('data', (part) => {
      text += part
    })
    socket.on('close', () => resolve(text))
    socket.on('error', (error) => (text === '' ? reject(error) : resolve(text)))
  })
}
