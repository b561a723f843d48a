import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { post, startWork } from './client.ts'

type Answer = { status: number; body?: object } | 'lost' | 'cut'

/** A server that answers as the test says, and notes the key of every request. */
function answering(t: TestContext, answers: Answer[]): { keys: (string | null)[] } {
  const keys: (string | null)[] = []
  t.mock.method(globalThis, 'fetch', async (_url: string, request: RequestInit) => {
    keys.push(new Headers(request.headers).get('idempotency-key'))
    const answer = answers.shift() ?? { status: 200 }
    if (answer === 'lost') throw new TypeError('the connection was cut')
    if (answer === 'cut') return new Response('{"id": "wh')
    return Response.json(answer.body ?? {}, { status: answer.status })
  })
  return { keys }
}

const REFUSED = { status: 400, body: { error: { code: 'INVALID_REQUEST', message: 'No.' } } }
const BROKEN = { status: 502, body: {} }

test('a request whose answer was lost has the same key when it is sent again, until it is answered', async (t) => {
  const { keys } = answering(t, ['lost', BROKEN, 'cut'])
  const send = () => startWork('/lost', { input: 1 })
  await assert.rejects(send(), { status: 0 })
  await assert.rejects(send(), { status: 502 })
  await assert.rejects(send(), { status: 200 })
  await send()
  await send()
  assert.equal(new Set(keys.slice(0, 4)).size, 1)
  assert.notEqual(keys[4], keys[3], 'an answered request that is made again is meant to act again')
})

test('a changed body is another act, and the first body keeps its key', async (t) => {
  const { keys } = answering(t, ['lost'])
  await assert.rejects(post('/changed', { input: 1 }), { status: 0 })
  await post('/changed', { input: 2 })
  await post('/changed', { input: 1 })
  assert.notEqual(keys[1], keys[0])
  assert.equal(keys[2], keys[0])
})

test('a second click while the first is under way has the same key', async (t) => {
  const { keys } = answering(t, [])
  await Promise.all([post('/twice', { input: 1 }), post('/twice', { input: 1 })])
  assert.equal(keys[0], keys[1])
})

test('a refused request did nothing, so the next one has a key of its own', async (t) => {
  const { keys } = answering(t, [REFUSED])
  await assert.rejects(post('/refused', { input: 1 }), { status: 400 })
  await post('/refused', { input: 1 })
  assert.notEqual(keys[0], keys[1])
})

test('a refusal that says nothing about the first try leaves its key in use', async (t) => {
  for (const status of [401, 408, 413, 425, 429]) {
    const { keys } = answering(t, ['lost', { ...REFUSED, status }])
    const send = () => post(`/busy/${status}`, { input: 1 })
    await assert.rejects(send(), { status: 0 })
    await assert.rejects(send(), { status })
    await send()
    assert.equal(new Set(keys).size, 1, String(status))
    t.mock.restoreAll()
  }
})

test('after ten minutes the same request is another wish', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  const { keys } = answering(t, ['lost'])
  await assert.rejects(post('/later', {}), { status: 0 })
  t.mock.timers.setTime(1_000_000 + 10 * 60_000)
  await post('/later', {})
  assert.notEqual(keys[0], keys[1])
})
