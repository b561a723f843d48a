import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { after, before, beforeEach, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { createEgress, type EgressOptions, type Fetch } from './egress.ts'
import { readBody } from './read-body.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

let base = ''
let handle: Handler = (_request, response) => response.end()
const servers: Server[] = []
const closers: (() => Promise<void>)[] = []

before(async () => {
  base = await listen(createServer((request, response) => handle(request, response)))
})
beforeEach(() => {
  handle = (_request, response) => response.end()
})
after(async () => {
  for (const close of closers) await close()
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
})

async function listen(server: Server): Promise<string> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function open(options: Partial<EgressOptions> = {}): Fetch {
  const egress = createEgress({ allow: [], ...options })
  closers.push(() => egress.close())
  return egress.fetch('trusted')
}

test('method, headers and every kind of body arrive as the global fetch would send them', async () => {
  handle = async (request, response) => {
    const { 'content-type': type = null, 'x-mine': mine } = request.headers
    response.end(JSON.stringify({ method: request.method, type, mine, body: (await buffer(request)).toString() }))
  }
  const form = new FormData()
  form.append('field', 'välue')
  form.append('file', new File(['content'], 'a.txt'))
  const cases: [NonNullable<Parameters<Fetch>[1]>['body'], RegExp, RegExp | null][] = [
    ['text', /^text$/, /^text\/plain/],
    [new TextEncoder().encode('bytes'), /^bytes$/, null],
    [new URLSearchParams({ a: 'b c' }), /^a=b\+c$/, /^application\/x-www-form-urlencoded/],
    [new Blob(['blob'], { type: 'x/y' }), /^blob$/, /^x\/y$/],
    [form, /välue.*filename="a.txt".*content/s, /^multipart\/form-data; boundary=/],
  ]
  const send = open()
  for (const [body, expected, type] of cases) {
    const response = await send(base, { method: 'post', body: body ?? null, headers: new Headers({ 'x-mine': '1' }) })
    const seen = (await response.json()) as { method: string; type: string | null; mine: string; body: string }
    assert.deepEqual([seen.method, seen.mine], ['POST', '1'])
    assert.match(seen.body, expected)
    if (type === null) assert.equal(seen.type, null)
    else assert.match(seen.type ?? '', type)
  }
  const request = new Request(`${base}/x`, { method: 'PUT', body: 'from a request', headers: { 'x-mine': '2' } })
  assert.deepEqual(await (await send(request)).json(), {
    method: 'PUT',
    type: 'text/plain;charset=UTF-8',
    mine: '2',
    body: 'from a request',
  })
  const body = ReadableStream.from([new TextEncoder().encode('streamed')])
  const streamed = await send(base, { method: 'POST', body, duplex: 'half' })
  assert.match(await streamed.text(), /streamed/)
})

test('the caller can bring neither its own connections nor another Host', async () => {
  handle = (request, response) => response.end(request.headers.host)
  const dispatcher = { dispatch: () => assert.fail('the dispatcher of the caller was used') }
  const init = { headers: { host: 'other.test' }, dispatcher } as unknown as NonNullable<Parameters<Fetch>[1]>
  const response = await open()(base, init)
  assert.equal(await response.text(), new URL(base).host)
})

test('a redirect across origins carries the body of a 307 on, but no credentials', async () => {
  const other = await listen(
    createServer(async (request, response) => {
      response.end(JSON.stringify({ headers: request.headers, body: (await buffer(request)).toString() }))
    }),
  )
  handle = (_request, response) => response.writeHead(307, { location: other }).end()
  const headers = { authorization: 'Bearer x', cookie: 'a=b', 'x-api-key': 'k', 'content-type': 'application/json' }
  // Trust ends with the origin: the other server needs its own entry in the allow list.
  const allow = [new URL(other).host]
  const response = await open({ allow })(base, { method: 'POST', body: '{}', headers })
  const seen = (await response.json()) as { headers: Record<string, string>; body: string }
  assert.equal(seen.body, '{}')
  assert.equal(seen.headers['content-type'], 'application/json')
  for (const name of ['authorization', 'cookie', 'x-api-key']) assert.equal(seen.headers[name], undefined, name)
  const body = ReadableStream.from([new TextEncoder().encode('once')])
  await assert.rejects(open({ allow })(base, { method: 'POST', body, duplex: 'half' }), /second time/)
})

test('redirect modes manual and error are honoured', async () => {
  handle = (_request, response) => response.writeHead(302, { location: '/next' }).end()
  assert.equal((await open()(base, { redirect: 'manual' })).headers.get('location'), '/next')
  await assert.rejects(open()(base, { redirect: 'error' }), /fetch failed/)
})

test('an aborted request ends at once: before the answer, and within the body', async () => {
  handle = (request, response) => {
    if (request.url === '/body') response.write('first')
  }
  const silent = new AbortController()
  const waiting = open()(base, { signal: silent.signal })
  silent.abort(new Error('enough'))
  await assert.rejects(waiting, /enough/)
  const within = new AbortController()
  const response = await open()(`${base}/body`, { signal: within.signal })
  within.abort(new Error('enough'))
  await assert.rejects(response.text(), /enough/)
})

test('silence before the headers, within the body, or of a name server ends with an error', async () => {
  handle = (request, response) => {
    if (request.url === '/body') response.write('first')
  }
  const causeOf = (error: unknown): string => String(error instanceof Error && (error.cause as Error)?.name)
  await assert.rejects(open({ headersTimeoutMs: 50 })(base), (error) => causeOf(error) === 'HeadersTimeoutError')
  const response = await open({ bodyIdleTimeoutMs: 50 })(`${base}/body`)
  await assert.rejects(response.text(), (error) => causeOf(error) === 'BodyTimeoutError')
  const lookup = () => new Promise<never>(() => {})
  await assert.rejects(
    open({ connectTimeoutMs: 50, lookup })('http://slow.test/'),
    (error) => causeOf(error) === 'ConnectTimeoutError',
  )
})

function* endlessly(): Generator<string> {
  for (;;) yield 'x'.repeat(1000)
}

test('a body is read up to the limit, counted after decompression', async () => {
  const endless = 'x'.repeat(1_000_000)
  handle = (request, response) => {
    if (request.url === '/bomb') response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(endless))
    else response.end('12345')
  }
  const send = open()
  const read = async (path: string, limit: number): Promise<[string, boolean]> => {
    const { bytes, truncated } = await readBody(await send(base + path), limit)
    return [bytes.toString(), truncated]
  }
  assert.deepEqual(await read('/', 5), ['12345', false])
  assert.deepEqual(await read('/', 4), ['1234', true])
  assert.deepEqual(await read('/bomb', 10), ['x'.repeat(10), true])
  const abandoned = Promise.withResolvers<void>()
  handle = (_request, response) => {
    Readable.from(endlessly()).pipe(response)
    response.on('close', abandoned.resolve)
  }
  assert.deepEqual(await read('/', 3), ['xxx', true])
  await abandoned.promise
  assert.deepEqual(await readBody({ body: null }, 10), { bytes: Buffer.alloc(0), truncated: false })
})

test('close ends requests that are under way', async () => {
  handle = () => {}
  const egress = createEgress({ allow: [] })
  const arrived = once(servers[0] ?? assert.fail(), 'request')
  const pending = assert.rejects(egress.fetch('trusted')(base))
  await arrived
  await egress.close()
  await pending
})

// A self-signed certificate for service.test and 127.0.0.1, made for this test.
const certificate = `
MIIBcDCCARagAwIBAgIBATAKBggqhkjOPQQDAjAXMRUwEwYDVQQDDAxzZXJ2aWNlLnRlc3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMD
AwMDBaMBcxFTATBgNVBAMMDHNlcnZpY2UudGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPVioxmwslrNa3WHjcVTy+ppqp/1FduhkWNr
joGK5Y8bwCXmZyjbQTjX+Uqh394v31CETCudpSj6Orzw3mnI3xqjUTBPMA8GA1UdEwEB/wQFMAMBAf8wHQYDVR0RBBYwFIIMc2VydmljZS50ZX
N0hwR/AAABMB0GA1UdDgQWBBQXP5N67ALfsAYftRUXD5BQC+WShjAKBggqhkjOPQQDAgNIADBFAiACGxDZfk5oSerm6V16nenZEtvzBJXcL0jp
HRcipoGjdwIhAJTDIDIGvq6ABhpp94vDcQAr6WnDF1+Ni3q5R+zQXBNi`
const certificateKey = `
MHcCAQEEIB1Lj9DI4QCoJxRBEtCWL7FF+G5Ac+u7x7jjzxbWvqmMoAoGCCqGSM49AwEHoUQDQgAE9WKjGbCyWs1rdYeNxVPL6mmqn/UV26GRY2
uOgYrljxvAJeZnKNtBONf5SqHf3i/fUIRMK52lKPo6vPDeacjfGg==`

test('TLS asks for and checks the name of the URL, although the checked address is dialled', async () => {
  const cert = new X509Certificate(Buffer.from(certificate, 'base64')).toString()
  const key = createPrivateKey({ key: Buffer.from(certificateKey, 'base64'), format: 'der', type: 'sec1' })
  const names: (string | false)[] = []
  const server = createTlsServer({ cert, key: key.export({ format: 'pem', type: 'sec1' }) }, (_request, response) => {
    response.end('secure')
  })
  server.on('secureConnection', (socket) => names.push(socket.servername || ''))
  const port = new URL(await listen(server)).port
  const send = open({ lookup: async () => [{ address: '127.0.0.1', family: 4 }] })
  const trusted = getCACertificates()
  setDefaultCACertificates([...trusted, cert])
  try {
    assert.equal(await (await send(`https://service.test:${port}/`)).text(), 'secure')
    assert.equal(await (await send(`https://127.0.0.1:${port}/`)).text(), 'secure')
    assert.deepEqual(names, ['service.test', ''])
    await assert.rejects(send(`https://other.test:${port}/`), (error) => {
      return error instanceof Error && String(error.cause).includes('ERR_TLS_CERT_ALTNAME_INVALID')
    })
  } finally {
    setDefaultCACertificates(trusted)
  }
  await assert.rejects(
    open({ lookup: async () => [{ address: '127.0.0.1', family: 4 }] })(`https://service.test:${port}/`),
  )
})
