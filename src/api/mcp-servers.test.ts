import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { stdioFixture } from '../../test/kit/mcp.ts'
import { startMcpHttp } from '../../test/kit/mcp-http.ts'
import type { McpServer } from '../kernel/mcp-server.ts'

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

test('members and viewers read and change nothing, and another project sees nothing', async () => {
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

test('a body must name exactly one place, and what belongs to it', async () => {
  const bodies: unknown[] = [
    { name: 'x' },
    { name: 'x', url: http.url, command: 'node' },
    { name: 'x', url: http.url, args: [] },
    { name: 'x', command: 'node', headers: { a: 'b' } },
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
