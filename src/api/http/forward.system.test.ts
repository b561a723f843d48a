// The service `ui`, in front of a server that stands for the agent-service and answers with the request it got.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { atEnd } from '../../../test/kit/at-end.ts'
import { freePort } from '../../../test/kit/free-port.ts'
import { recordLog } from '../../../test/kit/record-log.ts'
import { createEgress } from '../../egress/egress.ts'
import { silentLog } from '../../kernel/log.ts'
import { createMetrics } from '../../observe/metrics.ts'
import { noTracing } from '../../observe/tracing.ts'
import { createUiServer, type UiServerOptions } from '../ui-server.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown

const egress = createEgress({ allow: [], bodyIdleTimeoutMs: 0 })
atEnd(() => egress.close())

async function startAgent(handler: Handler) {
  const server = createServer((request, response) => void handler(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo // listens on TCP
  const stop = async (): Promise<void> => {
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  atEnd(stop)
  return { url: new URL(`http://127.0.0.1:${port}`), stop, server }
}

async function startUi(agentUrl: URL, options: Partial<UiServerOptions> = {}, listenOn = 0) {
  const app = createUiServer({
    agentUrl,
    fetch: egress.fetch('trusted'),
    log: silentLog,
    metrics: createMetrics(),
    tracer: noTracing,
    publicUrl: new URL('http://127.0.0.1:3000'),
    trustProxy: [],
    version: '0.0.0-test',
    adminToken: null,
    ...options,
  })
  await app.listen({ port: listenOn, host: '127.0.0.1' })
  atEnd(() => app.close())
  const { port } = app.server.address() as AddressInfo // listens on TCP
  return { app, port, url: `http://127.0.0.1:${port}` }
}

/** Answers with the request it got. */
const echo: Handler = async (request, response) => {
  const { method, url, headers } = request
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ method, url, headers, body: await text(request) }))
}
type Echoed = { method: string; url: string; headers: Record<string, string>; body: string }

const readEcho = async (answer: Response): Promise<Echoed> => (await answer.json()) as Echoed // the answer of `echo`

test('requests below /api, /v1 and /hooks arrive as they were sent, with the query and the bytes of the body', async () => {
  const ui = await startUi((await startAgent(echo)).url)
  for (const path of ['/api/projects?limit=5&cursor=%2F', '/v1/agent/run', '/hooks/a', '/sign-in/t', '/openapi.json']) {
    const answer = await fetch(`${ui.url}${path}`)
    assert.equal(answer.status, 200)
    assert.equal((await readEcho(answer)).url, path)
  }
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const body = '{ "a":\u0000 "ä" , no JSON at all'
    const sent = await fetch(`${ui.url}/api/x`, {
      method,
      body,
      headers: { 'content-type': 'text/odd', authorization: 'Bearer k', cookie: 'a=b' },
    })
    const { headers, ...rest } = await readEcho(sent)
    assert.deepEqual(rest, { method, url: '/api/x', body })
    assert.deepEqual([headers['content-type'], headers.authorization, headers.cookie], ['text/odd', 'Bearer k', 'a=b'])
  }
})

test('headers of the connection are dropped, in both directions; the forwarding ones are set', async () => {
  const agent = await startAgent((request, response) => {
    response.setHeader('connection', 'x-inner')
    response.setHeader('x-inner', 'secret of this hop')
    response.setHeader('keep-alive', 'timeout=1')
    response.setHeader('x-outer', 'kept')
    response.setHeader('set-cookie', ['a=1', 'b=2'])
    void echo(request, response)
  })
  const ui = await startUi(agent.url)
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = {
      connection: 'keep-alive, x-mine',
      'x-mine': 'for this hop',
      te: 'trailers',
      'proxy-authorization': 'Basic x',
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-host': 'evil.example',
      forwarded: 'for=203.0.113.9',
      'x-request-id': 'mine-1',
      'x-other': 'yes',
    }
    httpRequest(`${ui.url}/api/x`, { headers }, resolve).on('error', reject).end()
  })
  const { headers } = JSON.parse(await text(answer)) as Echoed // the answer of `echo`
  assert.equal(headers['x-other'], 'yes')
  for (const name of ['x-mine', 'te', 'proxy-authorization', 'forwarded']) assert.equal(headers[name], undefined, name)
  assert.deepEqual(
    [headers['x-forwarded-for'], headers['x-forwarded-proto'], headers['x-forwarded-host'], headers['x-request-id']],
    ['127.0.0.1', 'http', `127.0.0.1:${ui.port}`, 'mine-1'],
  )
  assert.equal(answer.headers['x-inner'], undefined)
  assert.equal(answer.headers['x-outer'], 'kept')
  assert.deepEqual(answer.headers['set-cookie'], ['a=1', 'b=2'])
  assert.equal(answer.headers['x-request-id'], 'mine-1')
})

test('addresses that a trusted proxy names are passed on, and other addresses are not', async () => {
  const agent = await startAgent(echo)
  const ui = await startUi(agent.url, { trustProxy: ['127.0.0.1'] })
  const sent = await fetch(`${ui.url}/api/x`, {
    headers: { 'x-forwarded-for': '198.51.100.1, 203.0.113.9', 'x-forwarded-proto': 'https' },
  })
  const { headers } = await readEcho(sent)
  // The address before the trusted proxy is the last that a trusted party has named.
  assert.equal(headers['x-forwarded-for'], '203.0.113.9, 127.0.0.1')
  assert.equal(headers['x-forwarded-proto'], 'https')
})

test('a stream is passed on piece by piece, and its headers before the first piece', async () => {
  const wanted = Promise.withResolvers<void>()
  const more = Promise.withResolvers<void>()
  const agent = await startAgent(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson', 'x-run-id': 'r' })
    response.flushHeaders()
    await wanted.promise
    response.write('{"n":1}\n')
    await more.promise
    response.end('{"n":2}\n')
  })
  const ui = await startUi(agent.url)
  const answer = await fetch(`${ui.url}/v1/agent/run`, { method: 'POST', body: '{}' })
  assert.deepEqual([answer.status, answer.headers.get('x-run-id')], [200, 'r'])
  const reader = answer.body?.getReader()
  const read = async (): Promise<string> => Buffer.from((await reader?.read())?.value ?? []).toString()
  // Each piece is sent after the piece before it has arrived here.
  wanted.resolve()
  assert.equal(await read(), '{"n":1}\n')
  more.resolve()
  assert.equal(await read(), '{"n":2}\n')
  assert.equal((await reader?.read())?.done, true)
})

test('a client that leaves ends the request to the agent-service', async () => {
  const gone = Promise.withResolvers<void>()
  const agent = await startAgent((request, response) => {
    response.flushHeaders()
    request.on('close', () => gone.resolve())
    response.on('close', () => gone.resolve())
  })
  const ui = await startUi(agent.url)
  const leaving = new AbortController()
  await fetch(`${ui.url}/api/events`, { signal: leaving.signal })
  leaving.abort()
  await gone.promise
})

test('a client that leaves early is not logged as a fault of the agent-service; a stop is answered 503', async () => {
  const { log, lines } = recordLog()
  let asked = Promise.withResolvers<void>()
  const agent = await startAgent(() => asked.resolve())
  const ui = await startUi(agent.url, { log, closeWithinMs: 10 })
  const leaving = new AbortController()
  const left = assert.rejects(fetch(`${ui.url}/api/slow`, { signal: leaving.signal }))
  await asked.promise
  leaving.abort()
  await left

  asked = Promise.withResolvers()
  const stopped = fetch(`${ui.url}/api/slow`)
  await asked.promise
  await ui.app.close()
  const answer = await stopped
  assert.equal(answer.status, 503)
  assert.match(await answer.text(), /This service is stopping/)
  assert.deepEqual(
    lines.filter(({ level }) => level === 'warn' || level === 'error').map(({ message }) => message),
    ['a request could not be served'],
  )
})

test('a stream that the agent-service cuts off is cut off here too, without a proper end', async () => {
  const agent = await startAgent((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: 1\n\n', () => response.destroy())
  })
  const ui = await startUi(agent.url)
  const answer = await fetch(`${ui.url}/api/events`)
  await assert.rejects(answer.text())
})

test('a dead agent-service gives 503 with envelope and Retry-After, and requests succeed once it is back', async () => {
  const agent = await startAgent(echo)
  const ui = await startUi(agent.url)
  await agent.stop()
  for (const method of ['GET', 'POST']) {
    const answer = await fetch(`${ui.url}/v1/agent/run`, { method })
    const { error } = (await answer.json()) as { error: { code: string; message: string } } // asserted below
    assert.deepEqual([answer.status, error.code, answer.headers.get('retry-after')], [503, 'UNAVAILABLE', '1'])
    assert.match(error.message, /^The agent-service does not answer/)
    assert.ok(answer.headers.get('x-request-id'))
  }
  assert.equal((await fetch(`${ui.url}/`)).status, 200, 'the pages are served all the same')
  await once(agent.server.listen(Number(agent.url.port), '127.0.0.1'), 'listening')
  assert.equal((await fetch(`${ui.url}/api/x`)).status, 200)
})

test('answers pass unchanged: statuses, redirects, empty answers, and answers to HEAD', async () => {
  const agent = await startAgent((request, response) => {
    const status = Number(new URL(request.url ?? '', 'http://x').searchParams.get('status'))
    if (status === 302) response.setHeader('location', 'http://127.0.0.1:1/elsewhere')
    response.writeHead(status, status === 200 ? { 'content-length': '7' } : {})
    response.end(status === 200 && request.method !== 'HEAD' ? 'content' : undefined)
  })
  const ui = await startUi(agent.url)
  for (const status of [200, 202, 204, 302, 404, 422, 500]) {
    const answer = await fetch(`${ui.url}/api/x?status=${status}`, { redirect: 'manual' })
    assert.equal(answer.status, status)
    if (status === 302) assert.equal(answer.headers.get('location'), 'http://127.0.0.1:1/elsewhere')
  }
  const head = await fetch(`${ui.url}/api/x?status=200`, { method: 'HEAD' })
  assert.deepEqual([head.status, head.headers.get('content-length'), await head.text()], [200, '7', ''])
})

test('an answer that is compressed all the same arrives uncompressed, and its headers say so', async () => {
  const packed = gzipSync('plain words')
  const agent = await startAgent((_request, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': String(packed.length) }).end(packed)
  })
  const ui = await startUi(agent.url)
  const answer = await fetch(`${ui.url}/api/x`)
  assert.deepEqual([answer.headers.get('content-encoding'), await answer.text()], [null, gunzipSync(packed).toString()])
})

test('a body over the limit is refused here, and nothing of it is sent on', async () => {
  let asked = 0
  const agent = await startAgent((request, response) => {
    asked += 1
    void echo(request, response)
  })
  const ui = await startUi(agent.url)
  const fits = await fetch(`${ui.url}/api/x`, { method: 'POST', body: 'x'.repeat(1_048_576) })
  assert.equal((await readEcho(fits)).body.length, 1_048_576)
  const answer = await fetch(`${ui.url}/api/x`, { method: 'POST', body: 'x'.repeat(1_048_577) })
  const { error } = (await answer.json()) as { error: { code: string } } // asserted below
  assert.deepEqual([answer.status, error.code, asked], [413, 'PAYLOAD_TOO_LARGE', 1])
})

test('no path with dots leads out of the forwarded addresses', async () => {
  const seen: string[] = []
  const agent = await startAgent((request, response) => {
    seen.push(request.url ?? '')
    response.end()
  })
  const ui = await startUi(new URL(`${agent.url.href}base/`))
  const paths = [
    '/api/../metrics',
    '/api/%2e%2e/metrics',
    '/api/../../x',
    '/v1/..%5c..%5cx/../../../y',
    '//evil.example/api/x',
    '/metrics/..;/api',
  ]
  for (const path of paths) {
    const status = await new Promise<number>((resolve, reject) => {
      httpRequest({ host: '127.0.0.1', port: ui.port, path }, (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      })
        .on('error', reject)
        .end()
    })
    assert.ok(status === 404 || (status === 200 && seen.at(-1)?.startsWith('/base/')), `${path}: ${status}`)
  }
  for (const path of seen) assert.match(path, /^\/base\/(api|v1)\//)
  await fetch(`${ui.url}/api/a/../b`)
  assert.equal(seen.at(-1), '/base/api/b')
})

test('a request that comes back to the service is refused instead of going round in a circle', async () => {
  const port = await freePort()
  const ui = await startUi(new URL(`http://127.0.0.1:${port}`), {}, port)
  const answer = await fetch(`${ui.url}/api/x`)
  assert.equal(answer.status, 503)
  assert.match(await answer.text(), /forwarded here by this service itself: check MUSTER_AGENT_URL/)
})

test('readiness follows the agent-service, health does not, and metrics need the admin token', async () => {
  let isReady = true
  const agent = await startAgent((request, response) => {
    assert.equal(request.url, '/readyz')
    response.writeHead(isReady ? 200 : 503, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ status: 'ready', checks: { database: true, migrations: true, worker: true } }))
  })
  const ui = await startUi(agent.url, { adminToken: 'the-token-of-the-admin', checkAnswers: true })
  const get = async (path: string, token?: string) => {
    const answer = await fetch(`${ui.url}${path}`, token ? { headers: { authorization: `Bearer ${token}` } } : {})
    return { status: answer.status, body: await answer.text() }
  }
  assert.equal((await get('/readyz')).status, 200)
  isReady = false
  assert.match((await get('/readyz')).body, /Not ready: the agent-service is not ready\./)
  await agent.stop()
  const dead = await get('/readyz')
  assert.equal(dead.status, 503)
  assert.match(dead.body, /Not ready: the agent-service does not answer\./)
  assert.equal((await get('/healthz')).status, 200)
  assert.equal((await get('/metrics')).status, 401)
  assert.equal((await get('/metrics', 'another')).status, 403)
  const metrics = await get('/metrics', 'the-token-of-the-admin')
  assert.deepEqual([metrics.status, metrics.body.includes('muster_http_')], [200, true])
})

test('the service has the pages alone: any other address that is not forwarded is 404', async () => {
  const ui = await startUi((await startAgent(echo)).url)
  const page = await (await fetch(`${ui.url}/`)).text()
  const script = /src="(\/assets\/[^"]+)"/.exec(page)?.[1] ?? assert.fail(page)
  for (const path of ['/', script, '/account', '/projects/p/runs', '/invitations/t', '/resets/t']) {
    assert.equal((await fetch(`${ui.url}${path}`)).status, 200, path)
  }
  for (const path of ['/nothing', '/apix/y', '/v2/agent'])
    assert.equal((await fetch(`${ui.url}${path}`)).status, 404, path)
})

test('a stop waits a moment for requests under way, and cuts off streams at once', async () => {
  const release = Promise.withResolvers<void>()
  const hasArrived = Promise.withResolvers<void>()
  const agent = await startAgent(async (request, response) => {
    if (request.url === '/api/stream') {
      response.flushHeaders()
      return
    }
    hasArrived.resolve()
    await release.promise
    response.end('late')
  })
  const ui = await startUi(agent.url)
  const stream = await fetch(`${ui.url}/api/stream`)
  const asked = fetch(`${ui.url}/api/slow`)
  await hasArrived.promise
  const closed = ui.app.close()
  await assert.rejects(stream.text())
  release.resolve()
  assert.equal(await (await asked).text(), 'late')
  await closed
})
