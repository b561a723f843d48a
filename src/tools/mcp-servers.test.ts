// Registration of servers: the rights of the caller, the stored row, the approved tools.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { atEnd } from '../../test/kit/at-end.ts'
import { dumpRows } from '../../test/kit/database.ts'
import { createMcpKit, errorText, stdioFixture } from '../../test/kit/mcp.ts'
import { startMcpHttp } from '../../test/kit/mcp-http.ts'
import { systemActor } from '../kernel/principal.ts'
import { createToolRegistry } from './registry.ts'

const http = await startMcpHttp()
const kit = await createMcpKit()
const codeOf = (code: string, message: RegExp) => (error: Error & { code?: string }) => {
  assert.equal(error.code, code)
  assert.match(error.message, message)
  return true
}

/** A server that answers every request alike. */
async function startAnswering(status: number, type: string, body: string): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status, { 'content-type': type }).end(body))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(async () => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/` // listens on TCP
}

/** A server that answers each method with a result of its own. */
async function startScripted(results: Record<string, unknown>): Promise<string> {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    if (request.method !== 'POST') return response.writeHead(405).end()
    const { id, method } = JSON.parse(text) as { id?: number; method: string } // sent by the SDK
    if (id === undefined) return response.writeHead(202).end()
    const hello = {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 's', version: '1' },
    }
    const result = method === 'initialize' ? hello : (results[method] ?? {})
    return response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(async () => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/` // listens on TCP
}

test('headers are sent, kept sealed and never answered', async () => {
  const secret = 'canary-0123456789'
  const server = await kit.register({ name: 'sealed', url: http.url, headers: { 'X-Secret': secret } })
  assert.deepEqual(server.header_names, ['X-Secret'])
  assert.ok(!JSON.stringify(server).includes(secret))
  assert.equal((await kit.call('sealed', 'echo', { text: 'x' })).result, 'x')
  assert.equal(http.lastHeaders['x-secret'], secret)
  const dump = JSON.stringify(await dumpRows(kit.pool))
  assert.ok(!dump.includes(secret) && !dump.includes(Buffer.from(secret).toString('hex')))
})

test('headers that were moved to another server do not open', async () => {
  await kit.register({ name: 'thief', url: http.url })
  await kit.pool.query(`update mcp_servers set sealed_headers = (select sealed_headers from mcp_servers where name = 'sealed')
                        where name = 'thief'`)
  assert.match(errorText(await kit.call('thief', 'echo', { text: 'x' })), /cannot be read/)
})

test('a name is taken once per project', async () => {
  await kit.register({ name: 'twice', url: http.url })
  await assert.rejects(kit.register({ name: 'twice', url: http.url }), codeOf('CONFLICT', /called twice already/))
})

test('only the instance admin registers commands and private addresses', async () => {
  await assert.rejects(kit.register({ name: 'mine', ...stdioFixture() }, false), codeOf('FORBIDDEN', /instance admin/))
  for (const url of [http.url, 'http://169.254.169.254/', 'http://[::1]/mcp']) {
    await assert.rejects(kit.register({ name: 'mine', url }, false), codeOf('INVALID_REQUEST', /not a public address/))
  }
})

test('a server that a project registered is called by the public rules, whatever is in the row', async () => {
  await kit.register({ name: 'demoted', url: http.url })
  await kit.pool.query(`update mcp_servers set set_by_instance_admin = false where name = 'demoted'`)
  assert.match(errorText(await kit.call('demoted', 'echo', { text: 'x' })), /refused: it is not a public address/)
})

test('a url that is no MCP server is refused with the reason, and its content is not repeated', async () => {
  const closed = 'http://127.0.0.1:9/'
  const bad: [string, RegExp][] = [
    [await startAnswering(404, 'text/html', 'SECRET PAGE'), /it answered with status 404/],
    [await startAnswering(500, 'text/plain', 'SECRET PAGE'), /it answered with status 500/],
    [await startAnswering(200, 'text/html', 'SECRET PAGE'), /it answered in another format/],
    [await startAnswering(200, 'application/json', '"SECRET PAGE"'), /it answered with something that is not MCP/],
    [await startAnswering(200, 'application/json', 'SECRET PAGE'), /it answered with something that is not MCP/],
    [await startAnswering(302, 'text/plain', 'SECRET PAGE'), /it answered with status 302/],
    [closed, /cannot be reached/],
  ]
  for (const [url, message] of bad) {
    await assert.rejects(kit.register({ name: 'bad', url }), (error: Error & { code?: string }) => {
      assert.ok(!error.message.includes('SECRET'))
      return codeOf('INVALID_REQUEST', message)(error)
    })
  }
})

test('a list of tools that cannot be kept is refused with the reason', async () => {
  const tool = { name: 'a', inputSchema: { type: 'object' } }
  const many = Array.from({ length: 501 }, (_, at) => ({ ...tool, name: `tool${at}` }))
  const bad: [unknown, RegExp][] = [
    [{ tools: [tool, tool] }, /it offers two tools called "a"/],
    [{ tools: many }, /it offers more than 500 tools/],
    [{ tools: [tool], nextCursor: 'again' }, /two tools called "a"/],
    [{ tools: [{ ...tool, description: 'x'.repeat(1_100_000) }] }, /list of tools is longer than 1048576 bytes/],
    [{ tools: [{ ...tool, name: '' }] }, /name is empty or too long/],
    [{ tools: [{ name: 'a', inputSchema: { type: 'string' } }] }, /something that is not MCP/],
    [{ tools: 'none' }, /something that is not MCP/],
  ]
  for (const [list, message] of bad) {
    const url = await startScripted({ 'tools/list': list })
    await assert.rejects(kit.register({ name: 'bad', url }), codeOf('INVALID_REQUEST', message))
  }
})

test('a result that is not MCP is an error of the call', async () => {
  const url = await startScripted({
    'tools/list': { tools: [{ name: 'a', inputSchema: { type: 'object' } }] },
    'tools/call': { content: 'SECRET' },
  })
  await kit.register({ name: 'nonsense', url })
  assert.equal(
    errorText(await kit.call('nonsense', 'a')),
    'The MCP server failed: it answered with something that is not MCP.',
  )
})

test('a failed registration throws only when it is stored, so that a repeated request can be answered', async () => {
  const who = { actor: systemActor, isInstanceAdmin: true }
  const store = await kit.mcp.prepare(kit.projectId, { name: 'later', url: 'http://127.0.0.1:9/' }, who)
  assert.throws(() => store(kit.pool), codeOf('INVALID_REQUEST', /cannot be reached/))
})

test('a server that comes back with another tool has that tool disabled, until it is approved', async () => {
  http.description = 'First.'
  const server = await kit.register({ name: 'pinned', url: http.url })
  assert.equal((await kit.call('pinned', 'changing')).result, 'as approved')
  http.description = 'Second.'
  http.forgetSessions()
  assert.match(errorText(await kit.call('pinned', 'changing')), /disabled until a person approves it again/)
  assert.equal((await kit.call('pinned', 'echo', { text: 'x' })).result, 'x')

  const stale = { hashes: server.tools.map(({ hash }) => hash) }
  await assert.rejects(kit.mcp.approve(kit.projectId, 'pinned', stale, systemActor), codeOf('CONFLICT', /other tools/))
  assert.match(errorText(await kit.call('pinned', 'changing')), /disabled/)

  const approved = await kit.mcp.approve(kit.projectId, 'pinned', null, systemActor)
  assert.equal(approved.pending_tools, null)
  assert.equal(approved.tools.find(({ name }) => name === 'changing')?.description, 'Second.')
  assert.equal((await kit.call('pinned', 'changing')).result, 'as approved')
})

test('every change is in the audit log', async () => {
  await kit.register({ name: 'noted', url: http.url })
  await kit.mcp.approve(kit.projectId, 'noted', undefined, systemActor)
  await kit.mcp.remove(kit.projectId, 'noted', systemActor)
  const { rows } = await kit.pool.query<{ action: string }>(
    `select action from audit_log where target_id = 'noted' order by seq`,
  )
  assert.deepEqual(
    rows.map(({ action }) => action),
    ['mcp_server.create', 'mcp_server.approve', 'mcp_server.delete'],
  )
  await assert.rejects(kit.mcp.remove(kit.projectId, 'noted', systemActor), codeOf('NOT_FOUND', /no such MCP server/))
  await assert.rejects(kit.mcp.approve(kit.projectId, 'noted', null, systemActor), codeOf('NOT_FOUND', /no such/))
})

test('an agent finds the tools of its project, and those of another project do not exist', async () => {
  const registry = createToolRegistry({ builtIns: [], appTools: [], mcp: kit.mcp })
  await kit.register({ name: 'found', url: http.url })
  assert.equal(await registry.check(kit.pool, kit.projectId, ['mcp:found/echo', 'mcp:found/*']), null)
  assert.match((await registry.check(kit.pool, kit.projectId, ['mcp:found/none'])) ?? '', /has no tool called "none"/)
  const other = '00000000-0000-7000-8000-000000000000'
  assert.match((await registry.check(kit.pool, other, ['mcp:found/echo'])) ?? '', /no MCP server called "found"/)
  assert.deepEqual((await registry.resolve(other, ['mcp:found/echo'])).missing, ['mcp:found/echo'])
  const { tools, missing } = await registry.resolve(kit.projectId, ['mcp:found/echo'])
  assert.deepEqual([tools[0]?.name, missing], ['mcp_found_echo', []])
})
