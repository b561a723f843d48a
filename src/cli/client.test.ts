import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { createClient } from './client.ts'
import { CommandFailure, unreachable } from './exit-codes.ts'

type Reply = Response | Error

const place = { url: new URL('http://127.0.0.1:8080'), key: 'a-key', keyFrom: 'MUSTER_KEY' }
const thing = z.looseObject({ id: z.string() })

function connect(...replies: Reply[]) {
  const requests: { url: string; method: string; headers: Headers; body: string | null }[] = []
  const interruption = new AbortController()
  const fetch: typeof globalThis.fetch = async (input, init = {}) => {
    requests.push({
      url: String(input),
      method: init.method ?? 'GET',
      headers: new Headers(init.headers),
      body: typeof init.body === 'string' ? init.body : null,
    })
    const reply = replies[requests.length - 1] ?? assert.fail('no more replies')
    if (reply instanceof Error) throw reply
    return reply
  }
  const { signal } = interruption
  const client = createClient({ locate: async () => place, fetch, signal, pause: async () => {} })
  return { client, requests, interruption }
}

const error = (status: number, code: string, message: string): Response =>
  Response.json({ error: { code, message, details: { fact: 1 } } }, { status })
const refused = Object.assign(new TypeError('fetch failed'), {
  cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }),
})

async function failureOf(work: Promise<unknown>): Promise<CommandFailure> {
  const failed = await work.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (failed instanceof CommandFailure) return failed
  return assert.fail(`no failure of a command: ${failed}`)
}

test('an answer is read by its schema, and unknown fields pass through', async () => {
  const { client, requests } = connect(Response.json({ id: 'x', of_a_newer_release: true }))
  assert.deepEqual(await client.ask('/api/things', thing), { id: 'x', of_a_newer_release: true })
  assert.equal(requests[0]?.url, 'http://127.0.0.1:8080/api/things')
  assert.equal(requests[0]?.headers.get('authorization'), 'Bearer a-key')
})

const failures: [name: string, reply: Reply, exitCode: number, message: RegExp][] = [
  ['a wrong key', error(401, 'UNAUTHENTICATED', 'Send a key.'), 4, /does not accept the key from MUSTER_KEY/],
  ['missing rights', error(403, 'FORBIDDEN', 'Needs the role admin.'), 4, /^Needs the role admin\.$/],
  ['a conflict', error(409, 'CONFLICT', 'This task is completed already.'), 4, /completed already/],
  ['wrong input', error(400, 'INVALID_REQUEST', 'input is missing.'), 2, /^input is missing\.$/],
  ['an unknown id', error(404, 'RUN_NOT_FOUND', 'No such run.'), 2, /^No such run\.$/],
  ['a server that is not ready', error(503, 'UNAVAILABLE', 'The database is away.'), 3, /database is away/],
  ['too many requests', error(429, 'RATE_LIMITED', 'Too many requests.'), 3, /Too many/],
  ['a bug of the server', error(500, 'INTERNAL_ERROR', 'Something broke.'), 1, /broke/],
  ['no server', refused, 3, /^http:\/\/127\.0\.0\.1:8080 does not answer \(ECONNREFUSED\)\.$/],
  ['another server', new Response('<html>', { status: 502 }), 3, /answered 502, and not as a Muster does/],
  ['another server that is happy', new Response('<html>'), 1, /not one that this release knows/],
  ['an answer of another shape', Response.json({ name: 'x' }), 1, /not one that this release knows \(id\)/],
]
for (const [name, reply, exitCode, message] of failures) {
  test(`${name} ends with code ${exitCode}`, async () => {
    const failure = await failureOf(connect(reply).client.ask('/api/things', thing))
    assert.match(failure.message, message)
    assert.equal(failure.exitCode, exitCode)
  })
}

test('a start whose connection was cut is tried again with the same key, so that it takes effect once', async () => {
  const { client, requests } = connect(refused, new TypeError('terminated'), Response.json({ id: 'x' }))
  assert.deepEqual(await client.start('/api/things', thing, { input: 1 }), { id: 'x' })
  const keys = requests.map(({ headers }) => headers.get('idempotency-key'))
  assert.equal(new Set(keys).size, 1)
  assert.ok(keys[0])
  assert.deepEqual(
    requests.map(({ method, body, headers }) => [method, body, headers.get('prefer')]),
    Array.from({ length: 3 }, () => ['POST', '{"input":1}', 'respond-async']),
  )
})

test('a start is not tried again if the server refused it, nor for ever', async () => {
  const conflict = connect(error(409, 'CONFLICT', 'The agent is disabled.'))
  assert.equal((await failureOf(conflict.client.start('/x', thing, {}))).exitCode, 4)
  assert.equal(conflict.requests.length, 1)
  const away = connect(refused, refused, refused, refused, refused)
  assert.equal((await failureOf(away.client.start('/x', thing, {}))).exitCode, 3)
  assert.equal(away.requests.length, 5)
})

test('Ctrl-C is no failure of the server', async () => {
  const { client, interruption } = connect(refused)
  interruption.abort(new Error('Interrupted.'))
  await assert.rejects(client.ask('/x', thing), /Interrupted/)
})

test('the server is looked for anew before each request', async () => {
  let asked = 0
  const locate = async () => {
    asked++
    if (asked === 1) throw unreachable('No server runs.')
    return { ...place, url: new URL(`http://127.0.0.1:${8080 + asked}`) }
  }
  const urls: string[] = []
  const fetch: typeof globalThis.fetch = async (input) => {
    urls.push(String(input))
    return Response.json({ id: 'x' })
  }
  const client = createClient({ locate, fetch, signal: new AbortController().signal, pause: async () => {} })
  await client.start('/x', thing, {})
  await client.ask('/x', thing)
  assert.deepEqual(urls, ['http://127.0.0.1:8082/x', 'http://127.0.0.1:8083/x'])
})
