// Bad input to the foundation: broken JSON, bodies, addresses, queries and credentials.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import {
  type BadRequest,
  conflict,
  dumpWithoutUse,
  invalid,
  json,
  media,
  missing,
  refuses,
  send,
  stranger,
} from '../../../test/kit/bad-requests.ts'
import { createHook } from '../../../test/kit/hooks.ts'
import { newId } from '../../kernel/id.ts'

const kit = await createTestApp({ signInLimit: 0 })
const project = await kit.createProject()
const admin = (await kit.createKey(project.id, 'admin')).key
await kit.call('POST /api/providers', { body: { name: 'taken', kind: 'offline' } })
await kit.call(`POST /api/projects/${project.id}/members`, { body: { email: 'taken@example.com', role: 'viewer' } })
const member = await kit.call<{ id: string }>(`POST /api/projects/${project.id}/members`, {
  body: { email: 'someone@example.com', role: 'viewer' },
})
await kit.pool.query(`insert into providers (name, kind, source) values ('offline', 'offline', 'built-in')`)

const hook = await createHook(kit, project.id)
const manual = await kit.createAgent(project.id)

const base = `/api/projects/${project.id}`
const hooks = `${base}/agents/${hook.agentId}/hooks`
const key = { name: 'k', role: 'viewer' }
const deep = (depth: number): string => `{"name":${'['.repeat(depth)}${']'.repeat(depth)}}`

const rows: BadRequest[] = [
  // Bodies that are no clean JSON
  { name: 'no body', request: `POST ${base}/keys`, ...invalid },
  { name: 'an empty JSON body', request: `POST ${base}/keys`, body: '', headers: json, ...invalid },
  { name: 'broken JSON', request: `POST ${base}/keys`, body: '{"name":', headers: json, ...invalid },
  { name: 'two JSON values', request: `POST ${base}/keys`, body: '{} {}', headers: json, ...invalid },
  { name: 'JavaScript instead of JSON', request: `POST ${base}/keys`, body: "{name:'k'}", headers: json, ...invalid },
  { name: 'NaN', request: `PATCH ${base}/settings`, body: '{"alert_factor":NaN}', headers: json, ...invalid },
  {
    name: 'a number beyond a double',
    request: `PATCH ${base}/settings`,
    body: '{"alert_factor":1e999}',
    headers: json,
    ...invalid,
  },
  {
    name: 'a property named twice',
    request: `POST ${base}/keys`,
    body: '{"name":"a","name":"b","role":"viewer"}',
    headers: json,
    ...invalid,
  },
  {
    name: '__proto__',
    request: `POST ${base}/keys`,
    body: '{"name":"a","role":"viewer","__proto__":{}}',
    headers: json,
    ...invalid,
  },
  {
    name: '__proto__ in free JSON',
    request: 'POST /api/providers',
    body: '{"name":"a","kind":"offline","options":{"__proto__":{"a":1}}}',
    headers: json,
    token: 'instance',
    ...invalid,
  },
  {
    name: 'an escaped NUL',
    request: `POST ${base}/keys`,
    body: '{"name":"a\\u0000","role":"viewer"}',
    headers: json,
    ...invalid,
  },
  {
    name: 'a NUL in free JSON',
    request: 'POST /api/providers',
    body: '{"name":"a","kind":"offline","options":{"a":"\\u0000"}}',
    headers: json,
    token: 'instance',
    ...invalid,
  },
  {
    name: 'a NUL in a key of free JSON',
    request: 'POST /api/providers',
    body: '{"name":"a","kind":"offline","options":{"\\u0000":1}}',
    headers: json,
    token: 'instance',
    ...invalid,
  },
  {
    name: 'a lone surrogate',
    request: `POST ${base}/keys`,
    body: '{"name":"\\ud800","role":"viewer"}',
    headers: json,
    ...invalid,
  },
  {
    name: 'a lone surrogate in free JSON',
    request: 'POST /api/providers',
    body: '{"name":"a","kind":"offline","options":{"a":"\\udfff"}}',
    headers: json,
    token: 'instance',
    ...invalid,
  },
  { name: '65 levels', request: `POST ${base}/keys`, body: deep(64), headers: json, ...invalid },
  { name: '50,000 levels', request: `POST ${base}/keys`, body: deep(50_000), headers: json, ...invalid },
  { name: 'a list', request: `POST ${base}/keys`, body: [key], ...invalid },
  { name: 'null', request: `POST ${base}/keys`, body: 'null', headers: json, ...invalid },
  { name: 'a string', request: `POST ${base}/keys`, body: '"key"', headers: json, ...invalid },
  {
    name: 'a body over 1 MiB',
    request: `POST ${base}/keys`,
    body: { name: 'x'.repeat(1_100_000), role: 'viewer' },
    status: 413,
    code: 'PAYLOAD_TOO_LARGE',
  },
  // Media types
  {
    name: 'text/plain',
    request: `POST ${base}/keys`,
    body: JSON.stringify(key),
    headers: { 'content-type': 'text/plain' },
    ...media,
  },
  {
    name: 'a form',
    request: `POST ${base}/keys`,
    body: 'name=k&role=viewer',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    ...media,
  },
  {
    name: 'multipart',
    request: `POST ${base}/keys`,
    body: 'x',
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
    ...media,
  },
  { name: 'XML', request: `POST ${base}/keys`, body: '<a/>', headers: { 'content-type': 'application/xml' }, ...media },
  {
    name: 'UTF-7',
    request: `POST ${base}/keys`,
    body: JSON.stringify(key),
    headers: { 'content-type': 'application/json; charset=utf-7' },
    ...media,
  },
  {
    name: 'UTF-16',
    request: `POST ${base}/keys`,
    body: JSON.stringify(key),
    headers: { 'content-type': 'application/json;charset="utf-16"' },
    ...media,
  },
  {
    name: 'no media type',
    request: `POST ${base}/keys`,
    body: JSON.stringify(key),
    headers: { 'content-type': '' },
    ...media,
  },
  {
    name: 'a compressed body',
    request: `POST ${base}/keys`,
    body: JSON.stringify(key),
    headers: { ...json, 'content-encoding': 'gzip' },
    ...media,
  },
  // Bodies that do not fit
  { name: 'an unknown property', request: `POST ${base}/keys`, body: { ...key, admin: true }, ...invalid },
  { name: 'a missing property', request: `POST ${base}/keys`, body: { name: 'k' }, ...invalid },
  { name: 'a number for a string', request: `POST ${base}/keys`, body: { ...key, name: 123 }, ...invalid },
  { name: 'a string for a number', request: `PATCH ${base}/settings`, body: { poll_interval: '1000' }, ...invalid },
  {
    name: 'a string for a boolean-like',
    request: `PATCH ${base}/settings`,
    body: { run_retention_days: 'true' },
    ...invalid,
  },
  { name: 'null where nothing may be null', request: `PATCH ${base}`, body: { name: null }, ...invalid },
  { name: 'an empty name', request: 'POST /api/projects', body: { name: '' }, token: 'instance', ...invalid },
  { name: 'a blank name', request: 'POST /api/projects', body: { name: '  \t ' }, token: 'instance', ...invalid },
  {
    name: 'a control character in a name',
    request: 'POST /api/projects',
    body: { name: 'a\u0007b' },
    token: 'instance',
    ...invalid,
  },
  {
    name: 'a name of 201 characters',
    request: 'POST /api/projects',
    body: { name: 'x'.repeat(201) },
    token: 'instance',
    ...invalid,
  },
  { name: 'an unknown role', request: `POST ${base}/keys`, body: { name: 'k', role: 'owner' }, ...invalid },
  { name: 'a role in capitals', request: `POST ${base}/keys`, body: { name: 'k', role: 'Admin' }, ...invalid },
  {
    name: 'an expiry in the past',
    request: `POST ${base}/keys`,
    body: { ...key, expires_at: '2001-01-01T00:00:00Z' },
    ...invalid,
  },
  {
    name: 'an expiry that is no instant',
    request: `POST ${base}/keys`,
    body: { ...key, expires_at: 'tomorrow' },
    ...invalid,
  },
  {
    name: 'an expiry that is a number',
    request: `POST ${base}/keys`,
    body: { ...key, expires_at: 1893456000 },
    ...invalid,
  },
  {
    name: 'the 30th of February',
    request: `POST ${base}/keys`,
    body: { ...key, expires_at: '2099-02-30T00:00:00Z' },
    ...invalid,
  },
  {
    name: 'a malformed address',
    request: `POST ${base}/members`,
    body: { email: 'nobody', role: 'viewer' },
    ...invalid,
  },
  {
    name: 'an address with a line break',
    request: `POST ${base}/members`,
    body: { email: 'a@example.com\nbcc: b@example.com', role: 'viewer' },
    ...invalid,
  },
  { name: 'a setting out of range', request: `PATCH ${base}/settings`, body: { poll_interval: 99 }, ...invalid },
  {
    name: 'a fraction of a millisecond',
    request: `PATCH ${base}/settings`,
    body: { poll_interval: 100.5 },
    ...invalid,
  },
  { name: 'an unknown setting', request: `PATCH ${base}/settings`, body: { pol_interval: 1000 }, ...invalid },
  {
    name: 'one wrong setting among right ones',
    request: `PATCH ${base}/settings`,
    body: { poll_interval: 1000, flow_timeout: -1 },
    ...invalid,
  },
  {
    name: 'settings that contradict each other',
    request: `PATCH ${base}/settings`,
    body: { doom_loop_warn: 9 },
    ...invalid,
  },
  {
    name: 'an unknown provider kind',
    request: 'POST /api/providers',
    body: { name: 'a', kind: 'openay' },
    token: 'instance',
    ...invalid,
  },
  {
    name: 'a provider name with a slash',
    request: 'POST /api/providers',
    body: { name: 'a/b', kind: 'offline' },
    token: 'instance',
    ...invalid,
  },
  {
    name: 'a file as base URL',
    request: 'POST /api/providers',
    body: { name: 'a', kind: 'openai', base_url: 'file:///etc/passwd' },
    token: 'instance',
    ...invalid,
  },
  {
    name: 'a base URL with a password',
    request: 'POST /api/providers',
    body: { name: 'a', kind: 'openai', base_url: 'http://u:p@h/' },
    token: 'instance',
    ...invalid,
  },
  {
    name: 'a negative price',
    request: 'POST /api/providers',
    body: { name: 'a', kind: 'openai', prices: { m: { input: -1, output: 1 } } },
    token: 'instance',
    ...invalid,
  },
  {
    name: 'a provider renamed',
    request: 'PATCH /api/providers/taken',
    body: { name: 'other' },
    token: 'instance',
    ...invalid,
  },
  { name: 'something to say to halt', request: `POST ${base}/halt`, body: { reason: 'x' }, ...invalid },
  // Addresses
  { name: 'an unknown address', request: 'GET /api/nothing', ...missing },
  { name: 'a trailing slash', request: 'GET /api/projects/', ...missing },
  { name: 'a malformed project id', request: 'GET /api/projects/1', ...missing },
  { name: 'an id with SQL in it', request: `GET /api/projects/${encodeURIComponent("' or 1=1--")}`, ...missing },
  { name: 'a NUL in the path', request: 'GET /api/projects/%00', ...missing },
  { name: 'a NUL in a provider name', request: 'GET /api/providers/a%00b', token: 'instance', ...missing },
  { name: 'a path upwards', request: 'GET /assets/%2e%2e%2f%2e%2e%2fpackage.json', ...missing },
  { name: 'an unknown provider', request: 'GET /api/providers/nope', token: 'instance', ...missing },
  { name: 'a malformed key id', request: `DELETE ${base}/keys/abc`, ...missing },
  { name: 'an unknown key', request: `DELETE ${base}/keys/${newId()}`, ...missing },
  { name: 'an unknown member', request: `PATCH ${base}/members/${newId()}`, body: { role: 'admin' }, ...missing },
  { name: 'an unknown invitation', request: 'GET /api/invitations/nope', ...missing },
  { name: 'a broken percent sign', request: 'GET /api/projects/%zz', ...invalid },
  { name: 'a method that is not there', request: 'PUT /api/projects', status: 405, code: 'METHOD_NOT_ALLOWED' },
  { name: 'DELETE on a list', request: `DELETE ${base}/keys`, status: 405, code: 'METHOD_NOT_ALLOWED' },
  // Queries
  { name: 'a limit of 0', request: 'GET /api/projects?limit=0', ...invalid },
  { name: 'a limit of 201', request: 'GET /api/projects?limit=201', ...invalid },
  { name: 'a limit that is no number', request: 'GET /api/projects?limit=ten', ...invalid },
  { name: 'a fractional limit', request: 'GET /api/projects?limit=1.5', ...invalid },
  { name: 'two limits', request: 'GET /api/projects?limit=1&limit=2', ...invalid },
  { name: 'an unknown query property', request: 'GET /api/projects?sort=id;select', ...invalid },
  { name: 'a made-up cursor', request: 'GET /api/projects?cursor=abc', ...invalid },
  { name: 'a made-up audit cursor', request: `GET ${base}/audit?cursor=-1`, ...invalid },
  { name: 'a NUL in the query', request: 'GET /api/projects?cursor=%00', ...invalid },
  { name: 'a hexadecimal limit', request: 'GET /api/projects?limit=0x10', ...invalid },
  { name: 'a limit with an exponent', request: 'GET /api/projects?limit=1e2', ...invalid },
  { name: 'a limit with a space', request: 'GET /api/projects?limit=%205', ...invalid },
  { name: 'an empty cursor', request: 'GET /api/projects?cursor=', ...invalid },
  { name: 'an empty audit cursor', request: `GET ${base}/audit?cursor=`, ...invalid },
  { name: 'a hexadecimal audit cursor', request: `GET ${base}/audit?cursor=0x10`, ...invalid },
  { name: 'a limit of 0 providers', request: 'GET /api/providers?limit=0', token: 'instance', ...invalid },
  { name: 'an unknown query of providers', request: 'GET /api/providers?foo=1', token: 'instance', ...invalid },
  {
    name: 'a default model of an unknown provider',
    request: `PATCH ${base}/settings`,
    body: { default_model: { provider: 'nope', name: 'x' } },
    ...invalid,
  },
  // Credentials and conflicts
  { name: 'no credentials', request: `GET ${base}`, token: null, ...stranger },
  { name: 'a made-up key', request: `GET ${base}`, token: 'mk_nonsense', ...stranger },
  {
    name: 'another scheme',
    request: `GET ${base}`,
    token: null,
    headers: { authorization: 'Basic YTpi' },
    ...stranger,
  },
  { name: 'an empty bearer', request: `GET ${base}`, token: null, headers: { authorization: 'Bearer ' }, ...stranger },
  {
    name: 'a made-up cookie',
    request: `GET ${base}`,
    token: null,
    headers: { cookie: 'muster_session=x' },
    ...stranger,
  },
  {
    name: 'a provider that exists',
    request: 'POST /api/providers',
    body: { name: 'taken', kind: 'offline' },
    token: 'instance',
    ...conflict,
  },
  { name: 'deleting the built-in provider', request: 'DELETE /api/providers/offline', token: 'instance', ...conflict },
  {
    name: 'an address that is invited already',
    request: `POST ${base}/members`,
    body: { email: 'Taken@Example.com', role: 'admin' },
    ...conflict,
  },
  {
    name: 'an Idempotency-Key of 256 characters',
    request: `POST ${base}/keys`,
    body: key,
    headers: { 'idempotency-key': 'x'.repeat(256) },
    ...invalid,
  },
  {
    name: 'an empty Idempotency-Key',
    request: `POST ${base}/keys`,
    body: key,
    headers: { 'idempotency-key': '' },
    ...invalid,
  },
  {
    name: 'a short password for a new account',
    request: `POST /api/invitations/nope/accept`,
    body: { name: 'a', password: 'short' },
    ...invalid,
  },
  // Hooks; deliveries are in hook-deliveries.slow.test.ts
  { name: 'a hook without a name', request: `POST ${hooks}`, body: {}, ...invalid },
  { name: 'a hook with a blank name', request: `POST ${hooks}`, body: { name: ' ' }, ...invalid },
  { name: 'a hook with a secret of its own', request: `POST ${hooks}`, body: { name: 'x', secret: 'x' }, ...invalid },
  { name: 'something to say to a rotation', request: `POST ${hook.path}/rotate`, body: { secret: 'x' }, ...invalid },
  { name: 'a made-up cursor of hooks', request: `GET ${hooks}?cursor=abc`, ...invalid },
  {
    name: 'a hook of an unknown agent',
    request: `POST ${base}/agents/${newId()}/hooks`,
    body: { name: 'x' },
    ...missing,
  },
  { name: 'a hook of a malformed agent', request: `POST ${base}/agents/1/hooks`, body: { name: 'x' }, ...missing },
  { name: 'a malformed hook id', request: `DELETE ${hooks}/1`, ...missing },
  { name: 'an unknown hook to rotate', request: `POST ${hooks}/${newId()}/rotate`, ...missing },
  {
    name: 'a hook of an agent that people trigger',
    request: `POST ${base}/agents/${manual.id}/hooks`,
    body: { name: 'x' },
    ...conflict,
  },
  { name: 'a key instead of the secret of a hook', request: `POST /hooks/${hook.id}`, body: {}, ...stranger },
  { name: 'a delivery to nowhere', request: 'POST /hooks/1', body: {}, ...missing },
  { name: 'a hook that is read', request: `GET /hooks/${hook.id}`, status: 405, code: 'METHOD_NOT_ALLOWED' },
]

test('the table has at least 60 rows', () => assert.ok(rows.length >= 60, `${rows.length}`))

refuses(kit, admin, rows)

test('a correct request is accepted, so the rows above can fail', async () => {
  const before = await dumpWithoutUse(kit)
  const answer = await send(kit, admin, { request: `POST ${base}/keys`, body: key })
  assert.equal(answer.statusCode, 201)
  assert.notDeepEqual(await dumpWithoutUse(kit), before)
  assert.equal((await kit.call(`PATCH ${base}/members/${member.body.id}`, { body: { role: 'member' } })).status, 200)
})
