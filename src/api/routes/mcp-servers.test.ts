import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { dumpRows } from '../../../test/kit/database.ts'
import { stdioFixture } from '../../../test/kit/mcp.ts'
import { startMcpHttp } from '../../../test/kit/mcp-http.ts'
import { newId } from '../../kernel/id.ts'
import { silentLog } from '../../kernel/log.ts'
import type { McpServer } from '../../kernel/mcp-server.ts'

const http = await startMcpHttp()
const kit = await createTestApp()
const project = await kit.createProject()
const other = await kit.createProject('Another')
const base = `/api/projects/${project.id}/mcp-servers`

test('a server is added, listed, read, approved and deleted', async () => {
  const made = await kit.call<McpServer>(`POST ${base}`, {
    body: { name: 'fixture', url: http.url, headers: { 'x-secret': 'canary-value' } },
  })
  assert.equal(made.status, 201, made.text)
  assert.deepEqual(made.body.header_names, ['x-secret'])
  assert.ok(made.body.tools.some(({ name, effect }) => name === 'echo' && effect === 'readonly'))
  const read = await kit.call<McpServer>(`GET ${base}/fixture`)
  assert.deepEqual(read.body, made.body)
  const list = await kit.call<{ items: McpServer[] }>(`GET ${base}`)
  assert.deepEqual(list.body.items, [made.body])
  const approved = await kit.call<McpServer>(`POST ${base}/fixture/approve`, {
    body: { hashes: made.body.tools.map(({ hash }) => hash) },
  })
  assert.equal(approved.status, 200)
  assert.equal((await kit.call(`POST ${base}/fixture/approve`)).status, 200)
  assert.equal((await kit.call(`POST ${base}/fixture/approve`, { body: { hashes: ['stale'] } })).status, 409)
  const audit = await kit.call(`GET /api/projects/${project.id}/audit`)
  for (const answer of [made, read, list, approved, audit]) assert.ok(!answer.text.includes('canary-value'))
  assert.equal((await kit.call(`DELETE ${base}/fixture`)).status, 204)
  for (const route of [`GET ${base}/fixture`, `DELETE ${base}/fixture`, `POST ${base}/fixture/approve`]) {
    assert.equal((await kit.call(route)).status, 404, route)
  }
})

test('a project admin may not name a command or a private address; the instance admin may', async () => {
  const { key } = await kit.createKey(project.id, 'admin')
  const command = { name: 'command', ...stdioFixture() }
  const refused = await kit.call(`POST ${base}`, { token: key, body: command })
  assert.equal(refused.status, 403)
  const inner = await kit.call(`POST ${base}`, { token: key, body: { name: 'inner', url: http.url } })
  assert.equal(inner.status, 400)
  assert.match(inner.text, /not a public address/)
  const made = await kit.call<McpServer>(`POST ${base}`, { body: command })
  assert.equal(made.status, 201, made.text)
  assert.equal(made.body.set_by_instance_admin, true)
})

test('variables of a program reach it, are stored sealed, and are never answered', async () => {
  const body = { name: 'with-env', ...stdioFixture(), env: { API_TOKEN: 'canary-of-env', MODE: 'x' } }
  const made = await kit.call<McpServer>(`POST ${base}`, { body })
  assert.equal(made.status, 201, made.text)
  assert.deepEqual(made.body.env_names, ['API_TOKEN', 'MODE'])
  const tool = (await kit.services.mcp.toolsOf(project.id, 'with-env'))?.find(({ name }) => name === 'environment')
  const context = {
    signal: new AbortController().signal,
    key: 'k',
    attempt: 1,
    run_id: newId(),
    project_id: project.id,
  }
  assert.equal(await tool?.execute({}, { ...context, log: silentLog, emit: () => {} }), 'API_TOKEN,HOME,MODE,PATH')
  const read = await kit.call(`GET ${base}/with-env`)
  const audit = await kit.call(`GET /api/projects/${project.id}/audit`)
  for (const answer of [made, read, audit]) assert.ok(!answer.text.includes('canary-of-env'))
  assert.ok(!JSON.stringify(await dumpRows(kit.pool)).includes('canary-of-env'))
})

test('arguments and query strings are shown to admins only, and are not in the audit', async () => {
  const url = `${http.url}?token=canary-of-query#canary-of-hash`
  assert.equal((await kit.call(`POST ${base}`, { body: { name: 'asked', url } })).status, 201)
  const program = { name: 'argued', ...stdioFixture('--key=canary-of-args') }
  assert.equal((await kit.call(`POST ${base}`, { body: program })).status, 201)
  const lookAs = async (token: string | undefined) => {
    const given = token === undefined ? {} : { token }
    const list = await kit.call<{ items: McpServer[] }>(`GET ${base}`, given)
    const one = await kit.call<McpServer>(`GET ${base}/asked`, given)
    const other = await kit.call<McpServer>(`GET ${base}/argued`, given)
    assert.deepEqual(
      list.body.items.find(({ name }) => name === 'asked'),
      one.body,
    )
    assert.deepEqual(
      list.body.items.find(({ name }) => name === 'argued'),
      other.body,
    )
    return { text: list.text + one.text + other.text, url: one.body.url, args: other.body.args }
  }
  const admin = await kit.createKey(project.id, 'admin')
  for (const token of [undefined, admin.key]) {
    assert.deepEqual(await lookAs(token).then((seen) => [seen.url, seen.args]), [url, program.args])
  }
  for (const role of ['member', 'viewer'] as const) {
    const seen = await lookAs((await kit.createKey(project.id, role)).key)
    assert.doesNotMatch(seen.text, /canary/)
    assert.deepEqual([seen.url, seen.args], [`${http.url}?***`, ['***', '***']])
  }
  const { rows } = await kit.pool.query<{ row: string }>('select to_jsonb(audit_log)::text as row from audit_log')
  assert.ok(rows.some(({ row }) => row.includes('mcp_server.create')))
  assert.ok(!rows.some(({ row }) => /canary-of-(query|hash|args)/.test(row)))
})

test('of several approvals at once one succeeds, and the others are refused', async () => {
  const body = { name: 'approved', ...stdioFixture() }
  assert.equal((await kit.call(`POST ${base}`, { body })).status, 201)
  const approve = () => kit.call(`POST ${base}/approved/approve`)
  const answers = await Promise.all(Array.from({ length: 6 }, approve))
  const statuses = answers.map(({ status }) => status).toSorted()
  assert.deepEqual(statuses, [200, 409, 409, 409, 409, 409])
  assert.equal((await approve()).status, 200)
  // The claim of a process that died while approving ends after a minute.
  await kit.pool.query(
    `update mcp_servers set approval_id = $1, approval_until = muster.now() + interval '1 minute' where name = 'approved'`,
    [newId()],
  )
  assert.equal((await approve()).status, 409)
  await kit.clock.advance(61_000)
  assert.equal((await approve()).status, 200)
})

test('members and viewers can read and not change servers, and another project sees none', async () => {
  await kit.call(`POST ${base}`, { body: { name: 'hidden', url: http.url } })
  for (const role of ['member', 'viewer'] as const) {
    const { key } = await kit.createKey(project.id, role)
    assert.equal((await kit.call(`GET ${base}`, { token: key })).status, 200)
    assert.equal((await kit.call(`POST ${base}`, { token: key, body: { name: 'x', url: http.url } })).status, 403)
  }
  const { key } = await kit.createKey(other.id, 'admin')
  assert.equal((await kit.call(`GET ${base}/hidden`, { token: key })).status, 404)
  assert.equal((await kit.call(`GET /api/projects/${other.id}/mcp-servers/hidden`, { token: key })).status, 404)
  assert.equal((await kit.call(`DELETE /api/projects/${other.id}/mcp-servers/hidden`, { token: key })).status, 404)
  assert.equal((await kit.call(`GET ${base}/hidden`)).status, 200)
})

test('a body must name either a command or a URL, with the fields that belong to it', async () => {
  const bodies: unknown[] = [
    { name: 'x' },
    { name: 'x', url: http.url, command: 'node' },
    { name: 'x', url: http.url, args: [] },
    { name: 'x', command: 'node', headers: { a: 'b' } },
    { name: 'x', url: http.url, env: { A: 'b' } },
    { name: 'x', command: 'node', env: { 'a b': 'c' } },
    { name: 'x', command: 'node', env: { LD_PRELOAD: '/tmp/x.so' } },
    { name: 'x', command: 'node', env: { A: 1 } },
    { name: 'x', command: '' },
    { name: 'x', command: 'node', args: 'a b' },
    { name: 'x/y', url: http.url },
    { name: 'x', url: 'ftp://example.com' },
    { name: 'x', url: 'http://a:b@example.com' },
    { name: 'x', url: http.url, headers: { 'a b': 'c' } },
    { name: 'x', url: http.url, headers: { a: 'b\r\nc: d' } },
    { name: 'x', url: http.url, tools: [] },
  ]
  for (const body of bodies) assert.equal((await kit.call(`POST ${base}`, { body })).status, 400, JSON.stringify(body))
})

test('a server that cannot be reached is refused with the reason, and a repeated request gets the first answer', async () => {
  const gone = await kit.call(`POST ${base}`, { body: { name: 'gone', url: 'http://127.0.0.1:9/' } })
  assert.equal(gone.status, 400)
  assert.match(gone.text, /The MCP server cannot be reached/)
  const request = { body: { name: 'once', url: http.url }, headers: { 'idempotency-key': 'k1' } }
  const first = await kit.call<McpServer>(`POST ${base}`, request)
  const second = await kit.call<McpServer>(`POST ${base}`, request)
  assert.equal(first.status, 201, first.text)
  assert.deepEqual(second.body, first.body)
  assert.equal((await kit.call(`POST ${base}`, { body: request.body })).status, 409)
})
