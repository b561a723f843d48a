import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { inspect } from 'node:util'
import { Agent, fetch as plainFetch } from 'undici'
import { createEgress, type Egress } from './egress.ts'
import { EgressRefused, type RefusalReason } from './refused.ts'
import type { Lookup } from './resolve.ts'

const publicAddress = { address: '93.184.216.34', family: 4 }
const loopback = { address: '127.0.0.1', family: 4 }

const literals = [
  '127.0.0.1',
  '127.1',
  '0x7f.1',
  '0x7f000001',
  '2130706433',
  '017700000001',
  '0177.0.0.1',
  '127.0.0.1.',
  '127.0.0.2',
  '127。0。0。1',
  '①②⑦.0.0.1',
  'localhost',
  'LOCALHOST',
  '0.0.0.0',
  '0',
  '[::1]',
  '[::]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
]
const unreachable = [
  '169.254.169.254',
  '10.0.0.1',
  '192.168.0.1',
  '100.64.0.1',
  '224.0.0.1',
  '[fe80::1]',
  '[fd00:ec2::254]',
  '[ff02::1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  '[2001::1]',
  '[::127.0.0.1]',
]

let server: Server
let port = 0
let hits: string[] = []
/** The spellings that the control can use: all, except the IPv6 ones on a machine without IPv6. */
let reachable: readonly string[] = []
const opened: Egress[] = []

function answer(request: IncomingMessage, response: ServerResponse): void {
  hits.push(`${request.method} ${request.headers.host}${request.url}`)
  const to = new URL(request.url ?? '', 'http://x').searchParams.get('to')
  if (to === null) response.end('reached')
  else response.writeHead(302, { location: to }).end()
}

before(async () => {
  server = createServer(answer)
  reachable = literals
  await listen('::').catch(() => {
    reachable = literals.filter((host) => !host.startsWith('['))
    return listen('0.0.0.0')
  })
  port = (server.address() as AddressInfo).port
})
beforeEach(() => {
  hits = []
})
after(async () => {
  await Promise.all(opened.map((egress) => egress.close()))
  server.closeAllConnections()
  server.close()
})

async function listen(host: string): Promise<void> {
  server.listen(0, host)
  await once(server, 'listening')
}

/** Starts a second service on the same machine; returns its port. */
async function listenBeside(): Promise<number> {
  const beside = createServer(answer).listen(0, '127.0.0.1')
  after(() => beside.closeAllConnections())
  after(() => beside.close())
  await once(beside, 'listening')
  return (beside.address() as AddressInfo).port
}

function open(allow: string[] = [], lookup?: Lookup): Egress {
  const egress = createEgress({ allow, ...(lookup ? { lookup } : {}) })
  opened.push(egress)
  return egress
}

/** A lookup that gives the lists of answers one after the other, the last one for ever, and counts its calls. */
function scripted(...answers: (readonly { address: string; family: number }[])[]): Lookup & { asked: number } {
  const lookup = Object.assign(
    async () => {
      lookup.asked += 1
      return answers[Math.min(lookup.asked, answers.length) - 1] ?? []
    },
    { asked: 0 },
  )
  return lookup
}

const refusal = (reason: RefusalReason) => (error: unknown) => {
  assert.ok(error instanceof EgressRefused, inspect(error))
  assert.equal(error.reason, reason)
  return true
}

test('no spelling of a private address is reached or may be stored', async () => {
  const egress = open()
  for (const host of [...literals, ...unreachable]) {
    const url = `http://${host}:${port}/`
    await assert.rejects(egress.fetch('public')(url), refusal('private_address'), host)
    await assert.rejects(egress.checkUrl(url, 'public'), refusal('private_address'), host)
  }
  assert.deepEqual(hits, [])
})

test('control: the plain fetch reaches the server by each of these spellings', async () => {
  for (const host of reachable) {
    const response = await plainFetch(`http://${host}:${port}/`)
    assert.equal(await response.text(), 'reached', host)
  }
  assert.equal(hits.length, reachable.length)
})

test('a trusted request reaches the same server', async () => {
  const response = await open().fetch('trusted')(`http://127.1:${port}/`)
  assert.equal(await response.text(), 'reached')
  assert.equal((await open().checkUrl(`http://127.1:${port}/a`, 'trusted')).href, `http://127.0.0.1:${port}/a`)
})

test('a name with any private address is refused as a whole', async () => {
  for (const addresses of [[loopback], [publicAddress, loopback], [loopback, publicAddress]]) {
    const egress = open([], scripted(addresses))
    await assert.rejects(egress.fetch('public')(`http://name.test:${port}/`), refusal('private_address'))
    await assert.rejects(egress.checkUrl(`http://name.test:${port}/`, 'public'), refusal('private_address'))
  }
  assert.deepEqual(hits, [])
})

test('a name that was public when it was stored and is private when it is used is refused', async () => {
  const lookup = scripted([publicAddress], [loopback])
  const egress = open([], lookup)
  const url = await egress.checkUrl(`http://rebind.test:${port}/`, 'public')
  await assert.rejects(egress.fetch('public')(url), refusal('private_address'))
  assert.equal(lookup.asked, 2)
  assert.deepEqual(hits, [])
})

test('the checked address is the one that is dialled: a connection resolves its name once', async () => {
  // 127.0.0.1 plays the public address, because the list allows it; a second lookup would get a dead address.
  const lookup = scripted([loopback], [{ address: '127.0.0.9', family: 4 }])
  const response = await open([`127.0.0.1:${port}`], lookup).fetch('public')(`http://rebind.test:${port}/`)
  assert.equal(await response.text(), 'reached')
  assert.equal(lookup.asked, 1)
  assert.deepEqual(hits, [`GET rebind.test:${port}/`])
})

test('control: a check before a fetch that resolves anew is fooled by rebinding', async () => {
  const lookup = scripted([publicAddress], [loopback])
  await open([], lookup).checkUrl(`http://rebind.test:${port}/`, 'public')
  const connect = {
    lookup: (
      name: string,
      _: object,
      answer: (error: null, addresses: { address: string; family: number }[]) => void,
    ) => {
      lookup(name).then((addresses) => answer(null, [...addresses]))
    },
  }
  const dispatcher = new Agent({ connect })
  const response = await plainFetch(`http://rebind.test:${port}/`, { dispatcher })
  assert.equal(await response.text(), 'reached')
  await dispatcher.close()
})

test('a redirect to a private address is refused, for public and for trusted requests', async () => {
  const lookup = scripted([loopback])
  const start = `http://start.test:${port}/?to=${encodeURIComponent(`http://127.0.0.1:${port}/inner`)}`
  await assert.rejects(open([`start.test:${port}`], lookup).fetch('public')(start), refusal('private_address'))
  await assert.rejects(open([], lookup).fetch('trusted')(start), refusal('private_address'))
  assert.ok(hits.every((hit) => !hit.includes('/inner')))
  assert.equal(hits.length, 2)
})

test('control: the plain fetch follows that redirect', async () => {
  const response = await plainFetch(
    `http://127.0.0.1:${port}/?to=${encodeURIComponent(`http://localhost:${port}/inner`)}`,
  )
  assert.equal(await response.text(), 'reached')
  assert.ok(hits.some((hit) => hit.includes('/inner')))
})

test('trust ends with the origin: another port of the trusted host is a stranger, and so is the way back', async () => {
  const other = `http://127.0.0.1:${await listenBeside()}`
  const start = (to: string): string => `http://127.0.0.1:${port}/?to=${encodeURIComponent(to)}`
  const request = open().fetch('trusted')
  await assert.rejects(request(start(`${other}/inner`)), refusal('private_address'))
  // The allow list opens the second origin; a redirect from there is not trusted again.
  const allowing = open([new URL(other).host]).fetch('trusted')
  assert.equal(await (await allowing(start(`${other}/`))).text(), 'reached')
  const back = start(`${other}/?to=${encodeURIComponent(`http://127.0.0.1:${port}/inner`)}`)
  await assert.rejects(allowing(back), refusal('private_address'))
  assert.ok(
    hits.every((hit) => !hit.includes('/inner')),
    hits.join(),
  )
})

test('a trusted host may redirect within itself, and three redirects are the limit', async () => {
  const chain = (length: number): string =>
    Array.from({ length }).reduce<string>((url) => `/?to=${encodeURIComponent(url)}`, '/end')
  const request = open().fetch('trusted')
  const response = await request(`http://127.0.0.1:${port}${chain(3)}`)
  assert.deepEqual([await response.text(), response.redirected], ['reached', true])
  assert.equal(response.url, `http://127.0.0.1:${port}/end`)
  await assert.rejects(request(`http://127.0.0.1:${port}${chain(4)}`), refusal('too_many_redirects'))
})

test('only http and https without user information are accepted, in the first URL and in a redirect', async () => {
  const cases: [string, RefusalReason][] = [
    ['ftp://example.com/', 'scheme'],
    ['file:///etc/passwd', 'scheme'],
    ['data:text/plain,x', 'scheme'],
    ['blob:http://example.com/x', 'scheme'],
    ['javascript:1', 'scheme'],
    ['gopher://127.0.0.1:6379/', 'scheme'],
    ['http://user:pass@example.com/', 'userinfo'],
    ['http://user@example.com/', 'userinfo'],
    ['http://127.0.0.1@example.com/', 'userinfo'],
    ['http://', 'invalid_url'],
    ['http://256.256.256.256/', 'invalid_url'],
  ]
  const egress = open()
  for (const [url, reason] of cases) {
    for (const policy of ['public', 'trusted'] as const) {
      await assert.rejects(egress.fetch(policy)(url), refusal(reason), url)
      await assert.rejects(egress.checkUrl(url, policy), refusal(reason), url)
    }
    const redirect = `http://127.0.0.1:${port}/?to=${encodeURIComponent(url)}`
    await assert.rejects(egress.fetch('trusted')(redirect), refusal(reason), `redirect to ${url}`)
  }
  await assert.rejects(egress.checkUrl('/relative', 'public'), refusal('invalid_url'))
})

test('the list opens exactly the hosts that it names', async () => {
  const reach = async (allow: string, host: string): Promise<boolean> => {
    const work = open([allow], scripted([loopback])).fetch('public')(`http://${host}/`)
    return work.then(
      async (response) => (await response.text()) === 'reached',
      (error: unknown) => !refusal('private_address')(error),
    )
  }
  const cases: [string, string, boolean][] = [
    [`127.0.0.1:${port}`, `127.0.0.1:${port}`, true],
    [`127.0.0.1:${port}`, `name.test:${port}`, true],
    [`127.0.0.1:${port + 1}`, `127.0.0.1:${port}`, false],
    ['127.0.0.0/8', `127.0.0.1:${port}`, true],
    ['10.0.0.0/8', `127.0.0.1:${port}`, false],
    [`name.test:${port}`, `name.test:${port}`, true],
    [`name.test:${port}`, `127.0.0.1:${port}`, false],
    [`name.test:${port}`, `other.test:${port}`, false],
    [`name.test:${port + 1}`, `name.test:${port}`, false],
    [`[::1]:${port}`, `127.0.0.1:${port}`, false],
  ]
  if (reachable.includes('[::1]')) cases.push([`[::1]:${port}`, `[::1]:${port}`, true])
  for (const [allow, host, reached] of cases) assert.equal(await reach(allow, host), reached, `${allow} ${host}`)
})

test('a refusal names the host and the reason, and no address', async () => {
  const egress = open([], scripted([{ address: '10.11.12.13', family: 4 }]))
  const error = await egress
    .fetch('public')('http://name.test/secret-path')
    .catch((caught: unknown) => caught)
  assert.ok(error instanceof EgressRefused)
  assert.deepEqual([error.host, error.reason], ['name.test', 'private_address'])
  assert.ok(!/10\.11|secret-path/.test(inspect(error)))
})

test('a name that does not resolve may be stored, and fails when it is used', async () => {
  const missing: Lookup = async () => {
    throw Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' })
  }
  const egress = open([], missing)
  assert.equal((await egress.checkUrl('https://later.test/hook', 'public')).host, 'later.test')
  await assert.rejects(egress.fetch('public')('https://later.test/hook'), /fetch failed/)
})
