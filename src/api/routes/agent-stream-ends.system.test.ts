// Streams of /v1/agent whose reader leaves, is slow, or loses its right, and whose server closes: no timer or
// connection stays behind, and the run goes on.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import type { Socket } from 'node:net'
import { mock, test } from 'node:test'
import { addressOf, isToken, NDJSON, openStream, SSE, send } from '../../../test/kit/agent-stream.ts'
import { ADMIN_TOKEN } from '../../../test/kit/app.ts'
import { createSupervisor } from '../../../test/kit/supervisor.ts'
import { newId } from '../../kernel/id.ts'
import type { Model } from '../../kernel/model-call.ts'

/** No other interval of the process has these lengths. */
const heartbeatMs = 1_234_567
const recheckMs = 1_234_568

const intervals = new Set<NodeJS.Timeout>()
const { setInterval: begin, clearInterval: end } = globalThis
mock.method(globalThis, 'setInterval', (act: () => void, ms: number) => {
  const timer = begin(act, ms)
  if (ms === heartbeatMs || ms === recheckMs) intervals.add(timer)
  return timer
})
mock.method(globalThis, 'clearInterval', (timer: NodeJS.Timeout) => {
  intervals.delete(timer)
  end(timer)
})

/** In characters. */
const MOST_SAID = 64 * 1_048_576

async function until(holds: () => unknown): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 2))
}

/** Finalizers say a part of their text, and wait for the test before they say the rest. */
async function createWaiting({ streamsPerKey, waits = {} }: { streamsPerKey?: number; waits?: object } = {}) {
  const gate = Promise.withResolvers<void>()
  /** The finalizers under way say these texts, in the order of their calls. */
  const voices: ((text: string) => void)[] = []
  const finalizer: Model = {
    contextTokens: 128_000,
    price: null,
    call: async (_request, { onText, signal }) => {
      let text = ''
      const say = (piece: string): void => {
        text += piece
        onText(piece)
      }
      say('One, ')
      voices.push(say)
      const stopped = once(signal, 'abort').catch(() => {})
      await Promise.race([gate.promise, stopped])
      const usage = { inputTokens: 1, outputTokens: 1, isEstimated: false }
      if (signal.aborted) return { kind: 'aborted', text, usage }
      say('two.')
      return { kind: 'answered', text, reasoning: [], calls: [], finishReason: 'stop', usage }
    },
  }
  const kit = await createSupervisor(
    {},
    {
      models: new Map([['voice', finalizer]]),
      waits: { heartbeatMs, recheckMs, ...waits },
      ...(streamsPerKey === undefined ? {} : { streamsPerKey }),
    },
  )
  const part = { prompt_id: 'finalizer_agent', model: { provider: 'test', name: 'voice', max_output_tokens: 100 } }
  assert.equal((await kit.put('blue', { ...kit.config, finalizer: part })).status, 200)
  const sockets = new Set<Socket>()
  kit.app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return { kit, gate, sockets, voices }
}
type Waiting = Awaited<ReturnType<typeof createWaiting>>

const task = { input: { task: 'Count.' }, options: { stream: true } }
const message = (chat: string) => ({
  id: chat,
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Count.' }] }],
})

interface Kind {
  path: string
  body?: object
  accept: string
}

/** Every stream that exists, in all of its forms. Streams that only read belong to a run and a chat under way. */
async function kindsOf({ kit, voices }: Waiting): Promise<Record<string, Kind>> {
  const chat = newId()
  const opened = await openStream(kit, '/v1/agent/chat', { body: message(chat) })
  await until(() => voices.length === 1)
  opened.leave()
  await until(() => kit.services.hub.watched().length === 0)
  const events = `/v1/agent/runs/${opened.response.headers['x-run-id']}/events`
  return {
    'POST /v1/agent/run as NDJSON': { path: '/v1/agent/run', body: task, accept: NDJSON },
    'POST /v1/agent/run as SSE': { path: '/v1/agent/run', body: task, accept: SSE },
    'GET /v1/agent/runs/:run_id/events as NDJSON': { path: events, accept: NDJSON },
    'GET /v1/agent/runs/:run_id/events as SSE': { path: events, accept: SSE },
    'POST /v1/agent/chat': { path: '/v1/agent/chat', body: message(newId()), accept: SSE },
    'GET /v1/agent/chat/:chat_id/stream': { path: `/v1/agent/chat/${chat}/stream`, accept: SSE },
  }
}

/** Reads until the text has begun. */
async function openKind(kit: Waiting['kit'], { path, body, accept }: Kind, headers = {}) {
  const sent = await send(kit, path, { body, accept, headers })
  sent.on('error', () => {})
  const [response] = await once(sent, 'response')
  response.setEncoding('utf8').on('error', () => {})
  let text = ''
  response.on('data', (piece: string) => {
    text += piece
  })
  if (response.statusCode === 200) await until(() => text.includes('One, '))
  return { status: response.statusCode as number, response, leave: () => sent.destroy(), text: () => text } // as HTTP has it
}

function nothingIsLeft({ kit, sockets }: Waiting): void {
  assert.deepEqual(kit.services.hub.watched(), [])
  assert.equal(intervals.size, 0, 'no timer is left')
  assert.equal(sockets.size, 0, 'no connection is left')
}

test('a reader who leaves during a stream leaves no timer or connection behind, and the run goes on', async (t) => {
  const waiting = await createWaiting()
  const { kit, gate } = waiting
  for (const [what, kind] of Object.entries(await kindsOf(waiting))) {
    await t.test(what, async () => {
      const reader = await openKind(kit, kind)
      assert.equal(kit.services.hub.watched().length, 1)
      assert.equal(intervals.size, 2)
      reader.leave()
      await until(() => waiting.sockets.size === 0)
      await until(() => kit.services.hub.watched().length === 0)
      nothingIsLeft(waiting)
    })
  }
  const { pool } = kit
  await until(() => pool.idleCount === pool.totalCount && pool.waitingCount === 0)
  gate.resolve()
  const { items } = await kit.get<{ items: { id: string }[] }>('/runs')
  assert.equal(items.length, 4, 'a stream that only reads starts no run')
  for (const { id } of items) await until(async () => (await kit.read(id)).body.result.status === 'DONE')
})

for (const [what, path, body] of [
  ['a stream of a run', '/v1/agent/run', task],
  ['a run', '/v1/agent/run', { input: { task: 'Count.' } }],
  ['a chat', '/v1/agent/chat', message(newId())],
] as const) {
  test(`a caller of ${what} who leaves before it is started leaves nothing behind either`, async () => {
    const waiting = await createWaiting()
    const { kit, sockets } = waiting
    const sent = httpRequest(`${await addressOf(kit)}${path}`, {
      method: 'POST',
      agent: false,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, ...kit.headers, 'content-type': 'application/json' },
    })
    sent.on('error', () => {})
    const holder = await kit.pool.connect()
    await holder.query('begin; lock table agent_runs in exclusive mode')
    sent.end(JSON.stringify(body))
    await until(async () => {
      const { rows } = await kit.pool.query(
        // The statements of workers wait for the table, too. Within a transaction the activity would not change.
        `select from pg_locks join pg_stat_activity using (pid) where not granted
           and relation = 'agent_runs'::regclass and query like '%insert into agent_runs%'`,
      )
      return rows.length > 0
    })
    sent.destroy()
    await until(() => sockets.size === 0)
    await holder.query('rollback')
    holder.release()
    await until(() => waiting.voices.length === 1)
    nothingIsLeft(waiting)
    waiting.gate.resolve()
  })
}

test('all streams of a key are counted together, and free their places', async () => {
  const waiting = await createWaiting({ streamsPerKey: 2 })
  const { kit, gate } = waiting
  const kinds = Object.values(await kindsOf(waiting))
  const { key } = await kit.createKey(kit.project.id, 'member')
  const headers = { authorization: `Bearer ${key}` }
  const countRuns = async () => (await kit.get<{ items: unknown[] }>('/runs')).items.length
  for (const kind of kinds) {
    const readers = [await openKind(kit, kind, headers), await openKind(kit, kind, headers)]
    const before = await countRuns()
    for (const further of kinds) {
      const refused = await openKind(kit, further, headers)
      assert.equal(refused.status, 429)
      assert.ok(Number(refused.response.headers['retry-after']) > 0)
      await once(refused.response, 'end')
      assert.equal(JSON.parse(refused.text()).error.code, 'RATE_LIMITED')
    }
    assert.equal(await countRuns(), before, 'a refused stream starts nothing')
    for (const reader of readers) reader.leave()
    await until(() => waiting.sockets.size === 0)
  }
  gate.resolve()
})

test('the streams of a revoked key are cut without an end', async () => {
  const waiting = await createWaiting({ waits: { recheckMs: 20 } })
  const { kit, gate } = waiting
  const { id, key } = await kit.createKey(kit.project.id, 'member')
  const readers: Awaited<ReturnType<typeof openKind>>[] = []
  for (const kind of Object.values(await kindsOf(waiting)))
    readers.push(await openKind(kit, kind, { authorization: `Bearer ${key}` }))
  await kit.call(`DELETE ${kit.base}/keys/${id}`)
  await until(() => readers.every(({ response }) => response.closed))
  assert.ok(readers.every(({ response, text }) => !response.complete && !/"final"|"finish"|DONE\]/.test(text())))
  await until(() => kit.services.hub.watched().length === 0)
  gate.resolve()
})

test('a server that closes cuts every stream without an end, and soon', async () => {
  const waiting = await createWaiting()
  const { kit, gate } = waiting
  const readers: Awaited<ReturnType<typeof openKind>>[] = []
  for (const kind of Object.values(await kindsOf(waiting))) readers.push(await openKind(kit, kind))
  const began = performance.now()
  await kit.app.close()
  assert.ok(performance.now() - began < 5_000, 'it does not wait for the runs')
  await until(() => readers.every(({ response }) => response.closed))
  for (const { response, text } of readers) {
    assert.equal(response.complete, false)
    assert.doesNotMatch(text(), /"final"|"finish"|DONE\]/)
  }
  nothingIsLeft(waiting)
  gate.resolve()
})

test('a reader who takes nothing while more and more comes is disconnected', async (t) => {
  const waiting = await createWaiting()
  const { kit, gate, sockets, voices } = waiting
  const { hub } = kit.services
  for (const [what, { path, body, accept }] of Object.entries(await kindsOf(waiting))) {
    await t.test(what, async () => {
      const reader = await openKind(kit, { path, ...(body ? { body } : {}), accept })
      reader.response.pause()
      const say = (body ? voices.at(-1) : voices[0]) ?? assert.fail()
      // The buffers of the system take some megabytes.
      for (let said = 0; hub.watched().length > 0; said += 64 * 1_024) {
        assert.ok(said < MOST_SAID, 'the reader is connected still')
        say('x'.repeat(64 * 1_024))
        await new Promise(setImmediate)
      }
      reader.leave()
      await until(() => sockets.size === 0)
      nothingIsLeft(waiting)
    })
  }
  gate.resolve()
})

test('a slow reader of a long text gets all of it', async () => {
  const parts = Array.from({ length: 40 }, (_, place) => `${place} `.repeat(20_000))
  const kit = await createSupervisor({ finalizer: { textParts: parts, text: '' } })
  for (const accept of [SSE, NDJSON]) {
    const reader = await openStream(kit, '/v1/agent/run', { body: task, accept })
    await reader.until(isToken)
    await until(async () => {
      const { body } = await kit.read(String(reader.response.headers['x-run-id']))
      return body.result.status === 'DONE'
    })
    while (await reader.until(() => true)) await new Promise(setImmediate)
    const said = reader.events.flatMap((event) => (isToken(event) ? [event.data.text] : [])).join('')
    assert.equal(said.length, parts.join('').length)
    assert.ok(said === parts.join(''))
  }
})
