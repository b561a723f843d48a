// The stream of a run: every journal event once and in order, the text under way, and an end when the run has ended.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { ADMIN_TOKEN, createTestApp } from '../../../test/kit/app.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { insertRuns } from '../../../test/kit/runs.ts'
import type { NewEvent } from '../../journal/entries.ts'
import type { RunChange } from '../../journal/run-change.ts'
import { newId } from '../../kernel/id.ts'

const kit = await createTestApp({ waits: { heartbeatMs: 20, recheckMs: 20 } })
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const address = await kit.app.listen({ port: 0, host: '127.0.0.1' })
const { hub, journal, texts } = kit.services

interface Message {
  id?: string
  event?: string
  data: Record<string, unknown>
}

const newRun = async (): Promise<string> => (await insertRuns(kit.pool, project.id, 1))[0] ?? assert.fail()
const append = async (
  runId: string,
  events: NewEvent[],
  { set, ancestors }: { set?: RunChange['set']; ancestors?: string[] } = {},
): Promise<void> => {
  const change = set ? { change: { set } } : {}
  await journal.append({ runId, fence: 1, events, ...change, ...(ancestors ? { ancestors } : {}) })
}
const completed: NewEvent = { kind: 'run.completed', data: { summary: 'done' } }
const complete = (runId: string): Promise<void> =>
  append(runId, [completed], { set: { status: 'completed', summary: 'done', ended: true } })
const endedRun = async (): Promise<string> => {
  const runId = await newRun()
  await complete(runId)
  return runId
}
const step = (number: number): NewEvent => ({ kind: 'step.completed', data: { step: number, text: `text ${number}` } })

/** The whole stream of a run that has ended. */
async function readAll(runId: string, lastEventId?: number): Promise<Message[]> {
  const headers = lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) }
  const answer = await kit.call(`GET ${base}/runs/${runId}/events`, { headers })
  assert.equal(answer.status, 200, answer.text)
  return parse(answer.text)
}

/** Reads a stream under way, message by message. */
async function open(runId: string, headers: Record<string, string> = {}, projectId = project.id) {
  const given = { authorization: `Bearer ${ADMIN_TOKEN}`, ...headers }
  const sent = httpRequest(`${address}/api/projects/${projectId}/runs/${runId}/events`, {
    headers: Object.fromEntries(Object.entries(given).filter(([, value]) => value !== '')),
    agent: false,
  })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage] // as node:http emits it
  response.setEncoding('utf8')
  const lines = pieces(response)
  return {
    response,
    /** The next message that is no comment; null after the end. */
    next: async (): Promise<Message | null> => {
      for (;;) {
        const { value, done } = await lines.next()
        if (done) return null
        const [message] = parse(`${value}\n\n`)
        if (message) return message
      }
    },
    nextRaw: async (): Promise<string> => (await lines.next()).value ?? '',
    leave: () => sent.destroy(),
  }
}

/** Messages are sent whole, so a chunk that ends a message holds no part of the next. */
async function* pieces(response: IncomingMessage): AsyncGenerator<string> {
  let chunks: string[] = []
  for await (const chunk of response) {
    chunks.push(chunk)
    if (!chunks.slice(-2).join('').endsWith('\n\n')) continue
    yield* chunks.join('').slice(0, -2).split('\n\n')
    chunks = []
  }
}

function parse(text: string): Message[] {
  return text.split('\n\n').flatMap((block) => {
    if (block === '' || block.startsWith(':')) return []
    const lines = block
      .split('\n')
      .map((line) => [line.split(': ')[0] ?? '', line.slice(line.indexOf(': ') + 2)] as const)
    const fields = Object.fromEntries(lines)
    assert.equal(lines.filter(([name]) => name === 'data').length, 1, 'the data is one line')
    return [{ ...fields, data: JSON.parse(fields.data ?? '') } as Message] // id and event, if they were sent
  })
}

/** Waits until the server has dropped its watcher. No time is measured. */
const unwatched = async (runId: string): Promise<void> => {
  while (hub.watched().includes(runId)) await new Promise(setImmediate)
}

test('the stream of a run that has ended has all events, then closes', async () => {
  const runId = await newRun()
  await append(runId, [{ kind: 'run.started', data: { input: 'a\nb\r\nc\u2028' } }, step(1)])
  await complete(runId)
  const messages = await readAll(runId)
  assert.deepEqual(
    messages.map(({ id, event }) => [id, event]),
    [
      ['1', 'run.started'],
      ['2', 'step.completed'],
      ['3', 'run.completed'],
    ],
  )
  const [first, second] = messages
  assert.deepEqual(Object.keys(first?.data ?? {}).slice(0, 3), ['run_id', 'seq', 'at'])
  assert.equal(first?.data.input, 'a\nb\r\nc\u2028')
  assert.equal(second?.data.run_id, runId)
  assert.equal(second?.data.seq, 2)
  assert.ok(!Number.isNaN(Date.parse(String(second?.data.at))))
})

test('the answer has the headers of a stream and the headers of every answer', async () => {
  const runId = await endedRun()
  const { headers } = await kit.call(`GET ${base}/runs/${runId}/events`, { headers: { 'x-request-id': 'my-request' } })
  assert.equal(headers['content-type'], 'text/event-stream; charset=utf-8')
  assert.equal(headers['cache-control'], 'no-store')
  assert.equal(headers['x-accel-buffering'], 'no')
  assert.equal(headers['x-request-id'], 'my-request')
  assert.equal(headers['x-content-type-options'], 'nosniff')
  assert.match(String(headers['content-security-policy']), /default-src 'none'/)
})

test('events arrive as they are committed, and tokens between them without an id', async () => {
  const runId = await newRun()
  await append(runId, [{ kind: 'run.started', data: {} }])
  const stream = await open(runId)
  assert.equal((await stream.next())?.event, 'run.started')
  texts.add({ runId, step: 1, offset: 0, text: 'Hel' }, [])
  assert.deepEqual(await stream.next(), { event: 'token', data: { run_id: runId, step: 1, offset: 0, text: 'Hel' } })
  texts.add({ runId, step: 1, offset: 3, text: 'lo' }, [])
  assert.deepEqual(await stream.next(), { event: 'token', data: { run_id: runId, step: 1, offset: 3, text: 'lo' } })
  await append(runId, [step(1)])
  assert.equal((await stream.next())?.id, '2')
  await complete(runId)
  assert.equal((await stream.next())?.event, 'run.completed')
  assert.equal(await stream.next(), null)
  await unwatched(runId)
})

test('a later reader sees the text of the step under way from its start', async () => {
  const runId = await newRun()
  await append(runId, [{ kind: 'run.started', data: {} }])
  texts.add({ runId, step: 1, offset: 0, text: 'So ' }, [])
  texts.add({ runId, step: 1, offset: 3, text: 'far' }, [])
  const stream = await open(runId, { 'last-event-id': '1' })
  assert.deepEqual((await stream.next())?.data, { run_id: runId, step: 1, offset: 0, text: 'So far' })
  await complete(runId)
  assert.equal((await stream.next())?.event, 'run.completed')
  texts.drop(runId)
})

test('events that another process wrote without a notice are seen', async () => {
  const runId = await newRun()
  const stream = await open(runId)
  await kit.pool.query(
    `with run as (update agent_runs set last_seq = 1, status = 'completed', completed_at = muster.now() where id = $1 returning id)
     insert into run_events (run_id, seq, id, kind, data) select id, 1, $2, 'run.completed', '{"summary":"afar"}' from run`,
    [runId, newId()],
  )
  assert.deepEqual((await stream.next())?.data.summary, 'afar')
  assert.equal(await stream.next(), null)
})

test('a reader that comes back misses nothing and sees nothing twice, after a cut at any event', async () => {
  const runId = await newRun()
  await append(runId, [{ kind: 'run.started', data: {} }, step(1), step(2)])
  await complete(runId)
  const all = await readAll(runId)
  for (let seen = 0; seen <= 4; seen++) {
    assert.deepEqual(await readAll(runId, seen), all.slice(seen), `after ${seen}`)
  }
})

for (const wrong of ['x', '-1', '1.5', '1e3', '0x1', '', ' ', '99999999999999999999', '1, 2']) {
  test(`the Last-Event-ID ${JSON.stringify(wrong)} is refused`, async () => {
    const runId = await endedRun()
    const answer = await kit.call(`GET ${base}/runs/${runId}/events`, { headers: { 'last-event-id': wrong } })
    assert.equal(answer.status, 400)
    assert.match(answer.text, /"INVALID_REQUEST"/)
  })
}

test('an unknown event id is refused for a finished run; for a run under way the stream starts from the beginning', async () => {
  const runId = await newRun()
  await append(runId, [{ kind: 'run.started', data: {} }])
  const stream = await open(runId, { 'last-event-id': '7' })
  assert.equal((await stream.next())?.id, '1')
  await complete(runId)
  assert.equal((await stream.next())?.id, '2')
  assert.equal(await stream.next(), null)
  const late = await kit.call(`GET ${base}/runs/${runId}/events`, { headers: { 'last-event-id': '3' } })
  assert.equal(late.status, 400)
  assert.match(late.text, /no event 3/)
})

test("a sub-run's events carry its id, and its end is not the end of its parent's stream", async () => {
  const parent = await newRun()
  const child = await newRun()
  await append(parent, [{ kind: 'run.started', data: {} }])
  const paused: NewEvent = { kind: 'run.paused', data: { pause_reason: 'step_limit' } }
  await append(child, [paused, completed], { ancestors: [parent], set: { status: 'completed', ended: true } })
  const stream = await open(parent)
  const seen = [await stream.next(), await stream.next(), await stream.next()]
  assert.deepEqual(
    seen.map((message) => [message?.id, message?.event, message?.data.run_id, message?.data.seq]),
    [
      ['1', 'run.started', parent, 1],
      ['2', 'run.paused', child, 2],
      ['3', 'run.completed', child, 3],
    ],
  )
  texts.add({ runId: child, step: 2, offset: 0, text: 'below' }, [parent])
  assert.equal((await stream.next())?.data.run_id, child)
  await complete(parent)
  assert.equal((await stream.next())?.data.run_id, parent)
  assert.equal(await stream.next(), null)
})

test('a pause that is an end closes the stream; a pause that is a wait keeps it open', async () => {
  const ended = await newRun()
  const paused = (pause_reason: string): NewEvent => ({ kind: 'run.paused', data: { pause_reason } })
  await append(ended, [paused('step_limit')], { set: { status: 'paused', pause_reason: 'step_limit', ended: true } })
  assert.deepEqual(
    (await readAll(ended)).map(({ event }) => event),
    ['run.paused'],
  )

  const waits = await newRun()
  const stream = await open(waits)
  await append(waits, [paused('human')], { set: { status: 'paused', pause_reason: 'human', waits_for: 'human' } })
  assert.equal((await stream.next())?.event, 'run.paused')
  await append(waits, [{ kind: 'run.continued', data: {} }], { set: { status: 'running', pause_reason: null } })
  assert.equal((await stream.next())?.event, 'run.continued')
  await complete(waits)
  assert.equal((await stream.next())?.event, 'run.completed')
  assert.equal(await stream.next(), null)
  // A stream from the start goes on after the earlier wait, which is still no end.
  assert.equal((await readAll(waits)).length, 3)
})

test('a stream without news sends keep-alives', async () => {
  const runId = await newRun()
  const stream = await open(runId)
  assert.equal(await stream.nextRaw(), ': keep-alive')
  assert.equal(await stream.nextRaw(), ': keep-alive')
  stream.leave()
  await unwatched(runId)
})

test('the server stops watching for a client that vanishes, and the run goes on', async () => {
  const runId = await newRun()
  const stream = await open(runId)
  while (!hub.watched().includes(runId)) await new Promise(setImmediate)
  stream.leave()
  await unwatched(runId)
  await complete(runId)
  assert.deepEqual(
    (await readAll(runId)).map(({ event }) => event),
    ['run.completed'],
  )
})

test('a reader that takes nothing while more and more comes is disconnected', { timeout: 60_000 }, async () => {
  const runId = await newRun()
  const stream = await open(runId)
  while (!hub.watched().includes(runId)) await new Promise(setImmediate)
  stream.response.pause()
  const text = 'x'.repeat(256 * 1_024)
  for (let offset = 0; hub.watched().includes(runId); offset += text.length) {
    hub.publishText(runId, { runId, step: 1, offset, text })
    // Events are appended too, so that the stream always has data to send.
    await append(runId, [{ kind: 'tool.progress', data: { text } }])
  }
  stream.leave()
})

test('a slow reader of a long journal gets all of it', async () => {
  const runId = await newRun()
  const text = 'y'.repeat(300_000)
  const many = Array.from({ length: 20 }, (_, index): NewEvent => ({ kind: 'tool.completed', data: { index, text } }))
  for (const event of many) await append(runId, [event])
  await complete(runId)
  const stream = await open(runId)
  const seen: unknown[] = []
  for (let message = await stream.next(); message; message = await stream.next()) {
    seen.push(message.id)
    await new Promise(setImmediate)
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 21 }, (_, index) => String(index + 1)),
  )
})

test('after a large event the text under way is whole, although the reader was blocked meanwhile', {
  timeout: 60_000,
}, async () => {
  const runId = await newRun()
  const stream = await open(runId)
  while (!hub.watched().includes(runId)) await new Promise(setImmediate)
  stream.response.pause()
  // The text is larger than the buffers of both ends.
  await append(runId, [{ kind: 'tool.completed', data: { step: 1, text: 'z'.repeat(12_000_000) } }])
  // When another stream has been answered, the large event is being written and its reader is blocked.
  await readAll(await endedRun())
  const words = ['one ', 'two ', 'three ', 'four']
  let offset = 0
  for (const text of words) {
    texts.add({ runId, step: 2, offset, text }, [])
    offset += text.length
  }
  let shown = ''
  while (shown.length < offset) {
    const message = await stream.next()
    assert.ok(message, 'the stream ended')
    if (message.event === 'token') shown += message.data.text
  }
  assert.equal(shown, words.join(''))
  await complete(runId)
  assert.equal((await stream.next())?.event, 'run.completed')
  texts.drop(runId)
})

test('HEAD answers with the headers of a stream and does not wait', async () => {
  const runId = await newRun()
  const answer = await kit.call(`HEAD ${base}/runs/${runId}/events`)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8')
  assert.equal(answer.text, '')
  await unwatched(runId)
})

test('an unknown run has no stream', async () => {
  for (const id of [newId(), 'x']) {
    const answer = await kit.call(`GET ${base}/runs/${id}/events`)
    assert.equal(answer.status, 404)
    assert.match(answer.text, /"RUN_NOT_FOUND"/)
    assert.match(String(answer.headers['content-type']), /json/)
  }
})

test('a stream ends with the rights of its reader: a revoked key, a removed member, a deleted project', async () => {
  const own = await kit.createProject()
  const [runId = ''] = await insertRuns(kit.pool, own.id, 1)
  const path = `/api/projects/${own.id}`
  const key = await kit.createKey(own.id, 'viewer')
  const person = await signInByLink(kit, { member: { projectId: own.id, role: 'viewer' } })
  const [byKey, byPerson, byAdmin] = [
    await open(runId, { authorization: `Bearer ${key.key}` }, own.id),
    await open(runId, { authorization: '', cookie: person.cookie }, own.id),
    await open(runId, {}, own.id),
  ]
  for (const { response } of [byKey, byPerson, byAdmin]) assert.equal(response.statusCode, 200)
  await kit.call(`DELETE ${path}/keys/${key.id}`)
  await assert.rejects(byKey.next(), /aborted/)
  await kit.pool.query('delete from members where user_id = $1', [person.userId])
  await assert.rejects(byPerson.next(), /aborted/)
  assert.equal(await byAdmin.nextRaw(), ': keep-alive')
  await kit.call(`DELETE ${path}`)
  await assert.rejects(byAdmin.next(), /aborted/)
  await unwatched(runId)
})

test('a stream whose database fails is cut, so that its reader comes back', async () => {
  const runId = await newRun()
  const stream = await open(runId)
  while (!hub.watched().includes(runId)) await new Promise(setImmediate)
  await kit.pool.query('alter table run_events rename to lost_events')
  hub.poke(runId)
  await assert.rejects(stream.next(), /aborted/)
  await kit.pool.query('alter table lost_events rename to run_events')
  await unwatched(runId)
})

test('a server that closes ends its streams at once', async () => {
  const runId = await newRun()
  const stream = await open(runId)
  while (!hub.watched().includes(runId)) await new Promise(setImmediate)
  const closed = kit.app.close()
  assert.equal(await stream.next(), null)
  await closed
  assert.deepEqual(hub.watched(), [])
})
