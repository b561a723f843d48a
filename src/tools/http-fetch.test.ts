import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { atEnd } from '../../test/kit/at-end.ts'
import { findClosedUrl } from '../../test/kit/model-server.ts'
import { createEgress } from '../egress/egress.ts'
import { silentLog } from '../kernel/log.ts'
import { defaultSettings } from '../kernel/project.ts'
import type { ToolContext } from '../kernel/tool.ts'
import { executeTool, type ToolOutcome } from './execute-tool.ts'
import { createHttpFetchTool } from './http-fetch.ts'

interface Seen {
  method: string | undefined
  url: string | undefined
  headers: IncomingMessage['headers']
  body: string
}
let seen: Seen[] = []
let written = 0

const pages: Record<string, (response: ServerResponse) => void> = {
  '/text': (response) => response.setHeader('content-type', 'text/plain').end('hello'),
  '/json': (response) => response.setHeader('content-type', 'application/problem+json; charset=utf-8').end('{"a":[1]}'),
  '/broken-json': (response) => response.setHeader('content-type', 'application/json').end('{"a":'),
  '/latin1': (response) =>
    response.setHeader('content-type', 'text/plain; charset=iso-8859-1').end(Buffer.from('caf\xe9', 'latin1')),
  '/png': (response) => response.setHeader('content-type', 'image/png').end(Buffer.from([137, 80, 78, 71])),
  '/bytes': (response) => response.end(Buffer.from([1, 0, 2])),
  '/empty': (response) => response.writeHead(204).end(),
  '/missing': (response) => response.writeHead(404, { 'set-cookie': 'a=b', 'retry-after': '7' }).end('not here'),
  '/endless': (response) => {
    const more = (): void => {
      while (!response.destroyed && response.write('x'.repeat(65_536))) written += 65_536
    }
    response.on('drain', more)
    more()
  },
  '/bomb': (response) =>
    response
      .writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'text/plain' })
      .end(gzipSync(Buffer.alloc(20_000_000, 'x'))),
  '/silent': () => {},
  '/closes': (response) => response.destroy(),
  '/breaks-off': (response) => {
    response.writeHead(200, { 'content-length': '100' }).write('half')
    setImmediate(() => response.destroy())
  },
  '/see-closes': (response) => response.writeHead(303, { location: '/closes' }).end(),
  '/moved-here': (response) => response.writeHead(307, { location: '/text' }).end(),
  '/see': (response) => response.writeHead(303, { location: '/json' }).end(),
  '/moved-away': (response) => response.writeHead(307, { location: `http://localhost:${port}/text` }).end(),
  '/inside': (response) => response.writeHead(302, { location: 'http://127.0.0.1:81/' }).end(),
}

const server = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  seen.push({ method: request.method, url: request.url, headers: request.headers, body })
  pages[request.url ?? '']?.(response)
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo // listens on TCP
const egress = createEgress({ allow: [`127.0.0.1:${port}`] })
atEnd(async () => {
  await egress.close()
  server.closeAllConnections()
  server.close()
})
const tool = createHttpFetchTool(egress)
const base = `http://127.0.0.1:${port}`

async function call(args: Record<string, unknown>, signal = new AbortController().signal): Promise<ToolOutcome> {
  seen = []
  const parsed = tool.parse(args)
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.message)
  const context: ToolContext = {
    signal,
    key: 'run-1:call-2',
    attempt: 1,
    run_id: 'r',
    project_id: 'p',
    log: silentLog,
    emit: () => {},
  }
  return executeTool(tool, parsed.args, context, {
    timeoutMs: 60_000,
    outputLimitBytes: 4_000_000,
    drainMs: () => 10_000,
  })
}

interface Answer {
  status: number
  headers: Record<string, string>
  body: unknown
}
const answerOf = (outcome: ToolOutcome): Answer => {
  assert.equal(outcome.isError, false, JSON.stringify(outcome.result))
  return outcome.result as Answer // the shape that the tool promises
}
const fetchPage = async (path: string): Promise<Answer> => answerOf(await call({ url: base + path }))

test('text, JSON, other encodings and empty answers come back as they are', async () => {
  assert.deepEqual(await fetchPage('/text').then(({ status, body }) => ({ status, body })), {
    status: 200,
    body: 'hello',
  })
  assert.deepEqual((await fetchPage('/json')).body, { a: [1] })
  assert.equal((await fetchPage('/broken-json')).body, '{"a":')
  assert.equal((await fetchPage('/latin1')).body, 'café')
  assert.deepEqual(await fetchPage('/empty').then(({ status, body }) => ({ status, body })), { status: 204, body: '' })
})

test('a refusal of the server is an answer, with the headers that help and no others', async () => {
  const { status, headers, body } = await fetchPage('/missing')
  assert.equal(status, 404)
  assert.equal(body, 'not here')
  assert.equal(headers['retry-after'], '7')
  assert.ok(!('set-cookie' in headers))
})

test('binary content is described, not shown', async () => {
  assert.equal((await fetchPage('/png')).body, '[binary content, image/png, 4 bytes; not shown]')
  assert.equal((await fetchPage('/bytes')).body, '[binary content, of unknown type, 3 bytes; not shown]')
})

test('an endless or a swollen answer is cut while it is read', async () => {
  for (const path of ['/endless', '/bomb']) {
    const { body } = await fetchPage(path)
    assert.match(String(body), /x\n\[cut: the answer is longer than 1048576 bytes\]$/)
    assert.ok(String(body).length < 1_100_000)
  }
  assert.ok(written < 50_000_000, 'the connection was dropped')
})

test('a request that changes something carries the key of the call, one that reads does not', async () => {
  await call({ url: `${base}/text`, method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"a":1}' })
  assert.equal(seen[0]?.headers['idempotency-key'], 'run-1:call-2')
  assert.equal(seen[0]?.headers['content-type'], 'application/json')
  assert.equal(seen[0]?.body, '{"a":1}')
  await call({ url: `${base}/text` })
  assert.equal(seen[0]?.headers['idempotency-key'], undefined)
  assert.equal(seen[0]?.method, 'GET')
})

test('arguments that would bypass the limits of the tool are refused before anything is sent', () => {
  const bad: Record<string, unknown>[] = [
    { url: '' },
    { url: base, method: 'CONNECT' },
    { url: base, method: 'get' },
    { url: base, headers: { Host: 'other' } },
    { url: base, headers: { 'content-length': '3' } },
    { url: base, headers: { Connection: 'close' } },
    { url: base, headers: { 'Proxy-Authorization': 'x' } },
    { url: base, headers: { 'Idempotency-Key': 'mine' } },
    { url: base, headers: { a: 'x\r\nhost: other' } },
    { url: base, headers: { 'a b': 'x' } },
    { url: base, headers: { a: 1 } },
    { url: base, agent: 'x' },
  ]
  for (const args of bad) assert.equal(tool.parse(args).ok, false, JSON.stringify(args))
})

test('private hosts, other schemes and redirects to them are an error result', async () => {
  const refused: [string, RegExp][] = [
    ['http://127.0.0.1:81/', /refused: it is not a public address/],
    ['http://169.254.169.254/latest/meta-data', /refused: it is not a public address/],
    ['http://[::1]/', /refused: it is not a public address/],
    ['file:///etc/passwd', /only http and https/],
    ['no url', /not a valid absolute URL/],
    ['http://a:b@example.com/', /user name or password/],
    [`${base}/inside`, /refused: it is not a public address/],
  ]
  for (const [url, reason] of refused) {
    const outcome = await call({ url })
    assert.equal(outcome.isError, true, url)
    assert.match(JSON.stringify(outcome.result), reason)
  }
})

test('a body with GET is an error, and nothing is sent', async () => {
  const outcome = await call({ url: `${base}/text`, body: 'x' })
  assert.match(JSON.stringify(outcome.result), /A GET request has no body/)
  assert.equal(seen.length, 0)
})

test('a server that never answers is given up when the signal fires', async () => {
  const stop = new AbortController()
  const running = call({ url: `${base}/silent` }, stop.signal)
  await new Promise<void>((resolve) => server.once('request', () => resolve()))
  stop.abort()
  assert.equal((await running).cause, 'aborted')
})

test('a server that is not there is an error with its reason', async () => {
  const closed = createServer()
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
  const { port: closedPort } = closed.address() as AddressInfo // listens on TCP
  await new Promise((resolve) => closed.close(resolve))
  const other = createEgress({ allow: ['127.0.0.1'] })
  atEnd(() => other.close())
  const context = { key: 'k', attempt: 1, run_id: 'r', project_id: 'p', log: silentLog, emit: () => {} }
  const outcome = await executeTool(
    createHttpFetchTool(other),
    { url: `http://127.0.0.1:${closedPort}/` },
    { ...context, signal: new AbortController().signal },
    { timeoutMs: 60_000, outputLimitBytes: 10_000 },
  )
  assert.match(JSON.stringify(outcome.result), /ECONNREFUSED/)
})

test('a read may be repeated; a write may not, unless the project says that its host heeds the key', () => {
  const effectOf = (args: Record<string, unknown>, idempotent_hosts: string[] = []) => {
    const parsed = tool.parse(args)
    assert.ok(parsed.ok)
    return tool.effectOf?.(parsed.args, { ...defaultSettings, idempotent_hosts })
  }
  assert.equal(tool.effect, 'unsafe')
  assert.equal(effectOf({ url: 'https://example.com/' }), 'readonly')
  assert.equal(effectOf({ url: 'https://example.com/', method: 'HEAD' }), 'readonly')
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const write = { url: 'https://Example.com/pay', method }
    assert.equal(effectOf(write), 'unsafe')
    assert.equal(effectOf(write, ['example.com']), 'keyed')
    assert.equal(effectOf(write, ['example.com:443']), 'keyed')
    assert.equal(effectOf(write, ['example.com:8443', 'other.com', 'le.com']), 'unsafe')
  }
  assert.equal(effectOf({ url: 'http://[::1]:81/', method: 'POST' }, ['[::1]:81']), 'keyed')
  assert.equal(effectOf({ url: 'http://example.com@evil.com/', method: 'POST' }, ['example.com']), 'unsafe')
  assert.equal(effectOf({ url: 'no url', method: 'POST' }, ['example.com']), 'unsafe')
})

test('a redirect of a write is followed within its origin or if it reads; any other redirect is the answer', async () => {
  const here = answerOf(await call({ url: `${base}/moved-here`, method: 'PUT', body: 'x' }))
  assert.deepEqual([here.status, here.body], [200, 'hello'])
  assert.deepEqual(
    seen.map(({ method, url, body, headers }) => [method, url, body, headers['idempotency-key']]),
    [
      ['PUT', '/moved-here', 'x', 'run-1:call-2'],
      ['PUT', '/text', 'x', 'run-1:call-2'],
    ],
  )
  const read = answerOf(await call({ url: `${base}/see`, method: 'POST', body: 'x' }))
  assert.deepEqual([read.status, read.body], [200, { a: [1] }])
  assert.deepEqual(
    seen.map(({ method, headers }) => [method, headers['idempotency-key']]),
    [
      ['POST', 'run-1:call-2'],
      ['GET', undefined],
    ],
  )
  const away = answerOf(await call({ url: `${base}/moved-away`, method: 'POST', body: 'x' }))
  assert.deepEqual([away.status, away.headers.location], [307, `http://localhost:${port}/text`])
  assert.equal(seen.length, 1)
})

test('a write whose connection broke after it was sent has an unknown outcome; one that was never sent has not', async () => {
  const closed = await findClosedUrl()
  const open = new URL(closed)
  const reaching = createHttpFetchTool(createEgress({ allow: [`127.0.0.1:${port}`, open.host] }))
  const causeOf = async (args: Record<string, unknown>): Promise<string> => {
    const context = { signal: new AbortController().signal, key: 'k', attempt: 1, run_id: 'r', project_id: 'p' }
    const given = { ...context, log: silentLog, emit: () => {} }
    return (await executeTool(reaching, args, given, { timeoutMs: 60_000, outputLimitBytes: 1_000 })).cause
  }
  assert.equal(await causeOf({ url: `${base}/closes`, method: 'POST' }), 'lost')
  assert.equal(await causeOf({ url: `${base}/breaks-off`, method: 'POST' }), 'lost')
  assert.equal(await causeOf({ url: `${base}/missing`, method: 'POST' }), 'ok')
  assert.equal(await causeOf({ url: `${base}/see-closes`, method: 'POST' }), 'error', 'the write was answered')
  assert.equal(await causeOf({ url: `${base}/closes` }), 'error', 'a read changes nothing')
  assert.equal(await causeOf({ url: closed, method: 'POST' }), 'error', 'nobody listens')
  assert.equal(await causeOf({ url: 'http://127.0.0.1:82/', method: 'POST' }), 'error', 'refused by our own rules')
  assert.equal(await causeOf({ url: 'http://127.0.0.1:1/', method: 'POST' }), 'error', 'a port that fetch refuses')
  assert.equal(await causeOf({ url: 'http://no-such-name.invalid/', method: 'POST' }), 'error', 'the name is unknown')
})
