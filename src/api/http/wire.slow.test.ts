// Attacks on a server at the level of bytes: no HTTP at all, headers without end, requests that never finish, bytes
// that are no text. The tests use real sockets, because injected requests never have such bytes.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { newId } from '../../kernel/id.ts'

const kit = await createTestApp({ requestTimeoutMs: 1_000 })
await kit.app.listen({ port: 0, host: '127.0.0.1' })
const address = kit.app.server.address()
assert.ok(address && typeof address === 'object')
const { port } = address
const project = await kit.createProject()
const { key } = await kit.createKey(project.id, 'admin')

/** Sends bytes and returns all bytes that come back until the server closes. */
function exchange(bytes: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    let answer = ''
    socket.on('data', (data) => {
      answer += data
    })
    socket.on('end', () => resolve(answer))
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
  })
}

const head = (body: string | Buffer, extra = ''): string =>
  `POST /api/projects/${project.id}/keys HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\n` +
  `Content-Type: application/json\r\n${extra}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`

const wrong: { name: string; bytes: string | Buffer; status: number; code: string }[] = [
  {
    name: 'HTTP/1.1 without a host',
    bytes: 'GET /api/me HTTP/1.1\r\nConnection: close\r\n\r\n',
    status: 400,
    code: 'INVALID_REQUEST',
  },
  {
    name: 'an unknown expectation',
    bytes: 'POST /api/projects HTTP/1.1\r\nHost: x\r\nExpect: 200-ok\r\n\r\n',
    status: 417,
    code: 'EXPECTATION_FAILED',
  },
  { name: 'CONNECT', bytes: 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n', status: 405, code: 'METHOD_NOT_ALLOWED' },
  { name: 'no HTTP at all', bytes: 'hello\r\n\r\n', status: 400, code: 'INVALID_REQUEST' },
  {
    name: 'TLS to the plain port',
    bytes: Buffer.from('16030100a5010000a10303', 'hex'),
    status: 400,
    code: 'INVALID_REQUEST',
  },
  {
    name: 'headers over 16 kB',
    bytes: `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(20_000)}\r\n\r\n`,
    status: 431,
    code: 'HEADERS_TOO_LARGE',
  },
  {
    name: 'two content lengths',
    bytes: 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na',
    status: 400,
    code: 'INVALID_REQUEST',
  },
  {
    name: 'a length beside chunks (smuggling)',
    bytes: 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    status: 400,
    code: 'INVALID_REQUEST',
  },
  {
    name: 'a control character in the address',
    bytes: 'GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n',
    status: 400,
    code: 'INVALID_REQUEST',
  },
  {
    name: 'a broken percent sign',
    bytes: 'GET /api/projects/%E0%A4%A HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    status: 400,
    code: 'INVALID_REQUEST',
  },
  {
    name: 'a body that is no UTF-8',
    bytes: withBytes(Buffer.from([0x22, 0xff, 0xfe, 0x22])),
    status: 400,
    code: 'INVALID_REQUEST',
  },
  {
    name: 'an overlong encoding of a slash',
    bytes: withBytes(
      Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('","role":"viewer"}')]),
    ),
    status: 400,
    code: 'INVALID_REQUEST',
  },
  {
    name: 'a body announced as over 1 MiB',
    bytes: head('x').replace('Content-Length: 1', 'Content-Length: 2000000'),
    status: 413,
    code: 'PAYLOAD_TOO_LARGE',
  },
  {
    name: 'a request that never ends',
    bytes: head('{"name":"slow","role":"viewer"}'),
    status: 408,
    code: 'REQUEST_TIMEOUT',
  },
]

for (const { name, bytes, status, code } of wrong) {
  test(`${name} is answered ${status} ${code} in the envelope`, async () => {
    const answer = await exchange(bytes)
    const [headers = '', body = ''] = answer.split('\r\n\r\n')
    assert.match(headers, new RegExp(`^HTTP/1.1 ${status} `), answer)
    assert.match(headers, /content-type: application\/json/i)
    assert.match(headers, /x-request-id: \S+/i)
    assert.match(headers, /x-content-type-options: nosniff/i)
    assert.equal(JSON.parse(body).error.code, code)
  })
}

test('after these attacks the server still serves, and nothing was written', async () => {
  const answer = await exchange(`GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  assert.match(answer, /^HTTP\/1.1 200 /)
  const { rows } = await kit.pool.query('select count(*) as count from api_keys')
  assert.equal(rows[0].count, 1)
})

test('an accepted request is answered before the garbage behind it ends the connection', async () => {
  const body = '{"name":"told","role":"viewer"}'
  const keptOpen = head(body).replace('Connection: close\r\n', '')
  const answer = await exchange(`${keptOpen}${body}\x01garbage\r\n\r\n`)
  assert.match(answer, /^HTTP\/1.1 201 /)
  assert.match(answer, /"name":"told"/)
  assert.match(answer, /HTTP\/1.1 400 INVALID_REQUEST/)
})

const files: [header: string, value: string, status: number][] = [
  ['range', 'bytes=99999999-', 416],
  ['if-match', '"x"', 412],
  ['if-unmodified-since', 'Thu, 01 Jan 1970 00:00:00 GMT', 412],
]

for (const [header, value, status] of files) {
  test(`a file asked for with ${header}: ${value} is answered ${status} in the envelope`, async () => {
    const answer = await kit.call<{ error: { code: string } }>('GET /docs/static/swagger-ui.css', {
      headers: { [header]: value },
    })
    assert.equal(answer.status, status, answer.text)
    assert.ok(answer.body.error.code)
  })
}

test('a file that is not there is 404, not a wrong method', async () => {
  assert.equal((await kit.call('GET /docs/static/nope')).status, 404)
})

const noFiles = [
  ...[
    '%00',
    'a%00.css',
    'swagger-ui.css%00',
    '.%00',
    '%2e%2e',
    '%2e',
    '..',
    '%2e%2e%2f%2e%2e%2fpackage.json',
    '..%2fx',
  ],
  ...['%5c..%5c', '//', '%2f%2fetc%2fpasswd', 'swagger-ui.css/', 'swagger-ui.css%2f..', '%0a', '%F0%9F%98%80', '%20'],
  ...[
    '%ff',
    '%c0%ae',
    '%zz',
    '%',
    '%u0000',
    '%ed%a0%80',
    'x'.repeat(300),
    'x'.repeat(6_000),
    'a/'.repeat(500),
    'theme/%00',
  ],
]

for (const folder of ['/docs/static/', '/docs/', '/assets/']) {
  test(`a path below ${folder} that names no file is 404`, async () => {
    for (const name of noFiles) {
      for (const method of ['GET', 'HEAD']) {
        const path = `${folder}${name}`
        const answer = await exchange(`${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
        assert.match(answer, /^HTTP\/1.1 404 /, `${method} ${path.slice(0, 60)}: ${answer.slice(0, 60)}`)
      }
    }
  })
}

test('an address that cannot be decoded is answered with all security headers', async () => {
  for (const path of ['/%', '/%ff']) {
    const answer = await exchange(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    assert.match(answer, /^HTTP\/1.1 400 /, path)
    assert.match(answer, /content-security-policy: default-src 'none'/, path)
  }
})

test('a request id that is sent comes back; a malformed request id is replaced', async () => {
  const mine = await kit.call('GET /healthz', { headers: { 'x-request-id': 'trace-42.a_b' } })
  assert.equal(mine.headers['x-request-id'], 'trace-42.a_b')
  for (const dirty of ['a b', 'x'.repeat(101), '<script>', '']) {
    const answer = await kit.call('GET /healthz', { headers: { 'x-request-id': dirty } })
    assert.notEqual(answer.headers['x-request-id'], dirty)
  }
})

const everywhere = [
  'GET /',
  'GET /healthz',
  'GET /api/me',
  'GET /api/nothing',
  'PUT /healthz',
  `GET /api/projects/${newId()}`,
]

for (const route of everywhere) {
  test(`${route} carries the security headers`, async () => {
    const { headers } = await kit.call(route, { token: null })
    assert.match(String(headers['content-security-policy']), /default-src 'none'/)
    assert.match(String(headers['content-security-policy']), /script-src 'self'(;|$)/)
    assert.match(String(headers['content-security-policy']), /frame-ancestors 'none'/)
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['x-frame-options'], 'DENY')
    assert.equal(headers['referrer-policy'], 'no-referrer')
    assert.equal(headers.server, undefined)
    assert.equal(headers['x-powered-by'], undefined)
    if (route.includes('/api')) assert.equal(headers['cache-control'], 'no-store')
  })
}

test('HSTS and the __Host- cookie come with an https address only', async () => {
  const secure = await createTestApp({ publicUrl: new URL('https://muster.example') })
  assert.match(String((await secure.call('GET /healthz')).headers['strict-transport-security']), /max-age=31536000/)
  assert.equal((await kit.call('GET /healthz')).headers['strict-transport-security'], undefined)
})

function withBytes(body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(head(body as never)), body]) // head needs only its length
}
