// The stream of a flow run: every event of its journal once and in order, and an end when the run has ended.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { ADMIN_TOKEN, createTestApp } from '../../../test/kit/app.ts'
import { createFlowJournal } from '../../flows/execution/journal.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import { silentLog } from '../../kernel/log.ts'

let gate = Promise.withResolvers<void>()
const kit = await createTestApp({
  models: new Map(),
  functions: {
    add: (n: number) => n + 1,
    wait: async () => {
      await gate.promise
      return 'waited'
    },
  },
  waits: { heartbeatMs: 20, recheckMs: 20 },
})
const project = await kit.createProject()
const runs = `/api/projects/${project.id}/flow-runs`
const address = await kit.app.listen({ port: 0, host: '127.0.0.1' })
const f = (name: string, more: object = {}) => ({ type: 'task', function: name, ...more })
const start = async (root: object): Promise<string> =>
  (await kit.call<FlowRun>(`POST ${runs}`, { body: { root, input: 1 } })).body.id

interface Message {
  id: string
  event: string
  data: Record<string, unknown>
}

function parse(text: string): Message[] {
  return text.split('\n\n').flatMap((block) => {
    if (block === '' || block.startsWith(':')) return []
    const fields = Object.fromEntries(
      block.split('\n').map((line) => [line.split(': ')[0] ?? '', line.slice(line.indexOf(': ') + 2)]),
    )
    return [{ id: fields.id ?? '', event: fields.event ?? '', data: JSON.parse(fields.data ?? '') }]
  })
}

const readAll = async (id: string, headers: Record<string, string> = {}): Promise<Message[]> => {
  const answer = await kit.call(`GET ${runs}/${id}/events`, { headers })
  assert.equal(answer.status, 200, answer.text)
  return parse(answer.text)
}

test('every event comes once, with its id, and the stream closes after the last', async () => {
  const id = await start({ type: 'sequential', steps: [f('add', { id: 'a' }), f('add')] })
  const messages = await readAll(id)
  assert.deepEqual(
    messages.map((message) => [message.id, message.event, message.data.task_id]),
    [
      ['1', 'flow.started', undefined],
      ['2', 'task.started', 'a'],
      ['3', 'task.completed', 'a'],
      ['4', 'task.started', 'root/1'],
      ['5', 'task.completed', 'root/1'],
      ['6', 'flow.completed', undefined],
    ],
  )
  for (const { id: eventId, data } of messages) {
    assert.deepEqual([data.run_id, data.seq], [id, Number(eventId)])
    assert.ok(!Number.isNaN(Date.parse(String(data.at))))
  }
  assert.equal(messages[5]?.data.output, 3)
  assert.deepEqual(await readAll(id), messages, 'a later reader gets the same events')
})

test('a stream with a Last-Event-ID goes on after that event; a malformed id is refused', async () => {
  const id = await start(f('add'))
  const all = await readAll(id)
  assert.deepEqual(await readAll(id, { 'last-event-id': '2' }), all.slice(2))
  assert.deepEqual(await readAll(id, { 'last-event-id': '0' }), all)
  assert.deepEqual(await readAll(id, { 'last-event-id': String(all.length) }), [])
  for (const wrong of ['x', '-1', '1.5', '', '99']) {
    const answer = await kit.call(`GET ${runs}/${id}/events`, { headers: { 'last-event-id': wrong } })
    assert.equal(answer.status, 400, wrong)
  }
})

test('events arrive as they happen, and a reader that leaves does not cancel the flow run', async () => {
  gate = Promise.withResolvers()
  const id = await start(f('wait'))
  const sent = httpRequest(`${address}${runs}/${id}/events`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    agent: false,
  })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage] // as node:http emits it
  assert.match(String(response.headers['content-type']), /^text\/event-stream/)
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk
    if (text.includes('task.started') && text.includes(': keep-alive')) break
  }
  sent.destroy()
  while (kit.services.hub.watched().includes(id)) await new Promise(setImmediate)
  const rest = readAll(id, { 'last-event-id': '2' })
  gate.resolve()
  assert.deepEqual(
    (await rest).map((message) => message.event),
    ['task.completed', 'flow.completed'],
  )
})

test('events that another process writes are in the stream', async () => {
  gate = Promise.withResolvers()
  const id = await start(f('wait'))
  const reading = readAll(id)
  while (!kit.services.hub.watched().includes(id)) await new Promise(setImmediate)
  while ((await kit.call<FlowRun>(`GET ${runs}/${id}`)).body.progress.running < 1) await new Promise(setImmediate)
  // The hub of this process is not told of the events that this journal writes, and the journal takes the run from its
  // worker.
  const { rows } = await kit.pool.query<{ fence: number }>(
    'update flow_runs set fence = fence + 1 where id = $1 returning fence',
    [id],
  )
  const elsewhere = createFlowJournal({ db: kit.pool, log: silentLog })
  const fence = rows[0]?.fence ?? assert.fail()
  const events = [{ kind: 'flow.cancelled', data: { error: null } }]
  await elsewhere.append({ runId: id, fence, events, change: { status: 'cancelled', ended: true } })
  assert.equal((await reading).at(-1)?.event, 'flow.cancelled')
  gate.resolve()
})

test('a key that is revoked loses its stream', async () => {
  gate = Promise.withResolvers()
  const id = await start(f('wait'))
  const key = await kit.createKey(project.id, 'viewer')
  const sent = httpRequest(`${address}${runs}/${id}/events`, {
    headers: { authorization: `Bearer ${key.key}` },
    agent: false,
  })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage] // as node:http emits it
  const ended = (async () => {
    for await (const _ of response);
  })()
  await kit.call(`DELETE /api/projects/${project.id}/keys/${key.id}`)
  await assert.rejects(ended, /aborted/)
  gate.resolve()
})
