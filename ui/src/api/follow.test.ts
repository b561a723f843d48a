import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { follow, type StreamEvent } from './follow.ts'

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}` // it listens on TCP
}

const head = { 'content-type': 'text/event-stream' }

test('after a cut connection the stream goes on after the last event, and ends when the server closes it', async (t) => {
  const asked: (string | undefined)[] = []
  const url = await serve(t, (request, response) => {
    asked.push(request.headers['last-event-id']?.toString())
    response.writeHead(200, head)
    if (asked.length === 1) {
      response.write('id: 1\nevent: a\ndata: {"n":1}\n\n: still here\n\nid: 2\neve')
      setTimeout(() => response.destroy(), 50)
    } else response.end('id: 2\r\nevent: b\r\ndata: one\r\ndata: two\r\n\r\n')
  })
  const seen: StreamEvent[] = []
  const open: boolean[] = []
  const { promise, resolve } = Promise.withResolvers<number>()
  follow(url, { after: '0', onEvent: (event) => seen.push(event), onOpen: (is) => open.push(is), onEnd: resolve })
  assert.equal(await promise, 200)
  assert.deepEqual(asked, ['0', '1'])
  assert.deepEqual(seen, [
    { id: '1', event: 'a', data: '{"n":1}' },
    { id: '2', event: 'b', data: 'one\ntwo' },
  ])
  assert.deepEqual(open, [true, false, true])
})

test('a refusal by Muster ends the stream; a busy server and the answer of a proxy do not', async (t) => {
  let asked = 0
  const answers = [
    [503, ''],
    [404, '<h1>No backend</h1>'],
    [404, '{"error":{"code":"NOT_FOUND","message":"There is no such run."}}'],
  ] as const
  const url = await serve(t, (_request, response) => {
    const [status, body] = answers[asked++] ?? assert.fail('asked once more')
    response.writeHead(status).end(body)
  })
  const { promise, resolve } = Promise.withResolvers<number>()
  follow(url, { after: null, onEvent: () => assert.fail('no event came'), onEnd: resolve })
  assert.equal(await promise, 404)
  assert.equal(asked, 3)
})

test('nothing is asked for after the stream was stopped', async (t) => {
  let asked = 0
  const url = await serve(t, (_request, response) => {
    asked++
    response.writeHead(200, head)
    response.write('data: x\n\n')
  })
  await new Promise<void>((resolve) => {
    const stop = follow(url, {
      after: null,
      onEvent: () => {
        stop()
        resolve()
      },
    })
  })
  await new Promise((resolve) => setTimeout(resolve, 600))
  assert.equal(asked, 1)
})

test('a stream that the server closes before the end is opened again, after the last event', async (t) => {
  const asked: (string | undefined)[] = []
  const url = await serve(t, (request, response) => {
    asked.push(request.headers['last-event-id']?.toString())
    response.writeHead(200, head).end(`id: ${asked.length}\ndata: x\n\n`)
  })
  const answers: (() => Promise<boolean>)[] = [
    async () => false,
    () => Promise.reject(new Error('the server is away')),
    async () => true,
  ]
  const open: boolean[] = []
  const { promise, resolve } = Promise.withResolvers<number>()
  follow(url, {
    after: null,
    hasEnded: () => answers.shift()?.() ?? assert.fail('it is asked once for each close'),
    onEvent: () => {},
    onOpen: (is) => open.push(is),
    onEnd: resolve,
  })
  assert.equal(await promise, 200)
  assert.deepEqual(asked, [undefined, '1', '2'])
  assert.deepEqual(open, [true, false, true, false, true])
})
