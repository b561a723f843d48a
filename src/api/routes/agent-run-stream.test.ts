// The streams of POST /v1/agent/run and GET /v1/agent/runs/:run_id/events: their forms, their end, and readers who
// leave and come back.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  finalOf,
  isToken,
  NDJSON,
  openStream,
  parseStream,
  readEvents,
  SSE,
  streamTask,
  textOf,
} from '../../../test/kit/agent-stream.ts'
import { createTestApp } from '../../../test/kit/app.ts'
import { createSupervisor, delegate, finish } from '../../../test/kit/supervisor.ts'
import { newId } from '../../kernel/id.ts'
import type { AgentRunAnswer } from '../../kernel/supervisor.ts'
import { startSupervisor } from '../../supervisor/start.ts'
import { createAskHuman } from '../../tasks/ask-human.ts'

const plain = createSupervisor({ finalizer: { textParts: ['Hel', 'lo.'], text: '' } }, { firstBackoffMs: 1 })

for (const [accept, expected] of [
  [undefined, NDJSON],
  ['*/*', NDJSON],
  ['application/*', NDJSON],
  ['application/x-ndjson', NDJSON],
  ['application/x-ndjson, text/event-stream;q=0.5', NDJSON],
  ['text/event-stream;q=0, */*', NDJSON],
  ['text/event-stream', SSE],
  ['TEXT/Event-Stream; charset=utf-8', SSE],
  ['text/*', SSE],
  ['text/event-stream, */*', SSE],
  ['application/x-ndjson;q=0.1, text/event-stream', SSE],
  ['application/json', null],
  ['text/html, application/xhtml+xml', null],
  ['*/*;q=0', null],
  ['application/x-ndjson;q=0', null],
] as const) {
  test(`Accept ${accept ?? 'absent'} gives ${expected ?? 'STREAM_NOT_SUPPORTED'}`, async () => {
    const kit = await plain
    const before = (await kit.get<{ items: unknown[] }>('/runs')).items.length
    const answer = await kit.call<{ error: { code: string } }>('POST /v1/agent/run', {
      headers: { ...kit.headers, ...(accept === undefined ? {} : { accept }) },
      body: { input: { task: 'x' }, options: { stream: true } },
    })
    if (expected === null) {
      assert.deepEqual([answer.status, answer.body.error.code], [400, 'STREAM_NOT_SUPPORTED'])
      assert.equal((await kit.get<{ items: unknown[] }>('/runs')).items.length, before, 'no run was started')
      return
    }
    assert.equal(answer.headers['content-type'], `${expected}; charset=utf-8`)
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.equal(finalOf(parseStream(expected, answer.text)).output?.content, 'Hello.')
  })
}

test('the stream has all events of a run: its beginning, its nodes and plans, the tokens, the end', async () => {
  const kit = await createSupervisor({
    supervisor: [delegate('research_agent', [{ id: 't', description: 'Look', status: 'IN_PROGRESS' }]), finish()],
    finalizer: { textParts: ['Hel', 'lo.'], text: '' },
  })
  const events = (await streamTask(kit, 'Say hello.')).events.map(({ id: _, ...event }) => event)
  const { run_id: runId } = finalOf(events)
  const update = (data: object) => ({ event_type: 'status_update', data: { run_id: runId, ...data } })
  const plan = [{ id: 't', description: 'Look', status: 'IN_PROGRESS' }]
  // A text that is complete before the reader has seen its beginning may come in fewer pieces.
  assert.equal(textOf(events), 'Hello.')
  const told = events.filter((event, place) => !isToken(event) || !isToken(events[place - 1] ?? event))
  assert.deepEqual(
    told.map((event) => (isToken(event) ? 'text' : event)),
    [
      update({ status: 'RUNNING', active_agent: 'supervisor' }),
      update({ status: 'RUNNING', active_agent: 'research_agent', plan }),
      update({ status: 'RUNNING', active_agent: null, plan }),
      update({ status: 'RUNNING', active_agent: null, plan: [] }),
      update({ active_agent: 'finalizer' }),
      'text',
      { event_type: 'final', data: { status: 'DONE', output: { type: 'text', content: 'Hello.' }, run_id: runId } },
    ],
  )
})

test('a missing prompt gives a final FAILED with its code; the stream itself does not fail', async () => {
  const kit = await createSupervisor()
  await kit.call(`DELETE ${kit.base}/prompts/finalizer_agent/variants/blue`)
  const final = finalOf((await streamTask(kit, 'Say hello.')).events)
  assert.deepEqual([final.status, final.error?.code], ['FAILED', 'PROMPT_MISSING'])
})

test('a stream over the limit is refused before a run is started', async () => {
  const kit = await createSupervisor({}, { streamsPerKey: 0 })
  const { key } = await kit.createKey(kit.project.id, 'member')
  const answer = await kit.call<{ error: { code: string } }>('POST /v1/agent/run', {
    token: key,
    body: { input: { task: 'x' }, options: { stream: true } },
  })
  assert.deepEqual([answer.status, answer.body.error.code], [429, 'RATE_LIMITED'])
  assert.deepEqual((await kit.get<{ items: unknown[] }>('/runs')).items, [])
})

/** A finalizer that says half of its text, and the rest when the test lets it. */
async function createHalting() {
  const gate = Promise.withResolvers<void>()
  const kit = await createSupervisor(
    {
      finalizer: (_request, call) =>
        call === 0
          ? {
              textParts: ['One, ', 'two, '],
              text: '',
              waitFor: gate.promise,
              fail: { message: 'Cut.', isRetryable: true },
            }
          : { textParts: ['one, ', 'two, ', 'three.'], text: '' },
    },
    { firstBackoffMs: 1 },
  )
  return { kit, gate }
}

test('a reader who comes back in the midst of the text gets it from its beginning, after a reset', async () => {
  const { kit, gate } = await createHalting()
  const body = { input: { task: 'Count.' }, options: { stream: true } }
  const first = await openStream(kit, '/v1/agent/run', { body })
  await first.until(isToken)
  const seen = first.events.findLast(({ id }) => id !== null)?.id
  first.leave()
  const path = `/v1/agent/runs/${first.response.headers['x-run-id']}/events`
  const second = await openStream(kit, path, { headers: { 'last-event-id': String(seen) } })
  assert.equal((await second.until(() => true))?.data.reset, true)
  assert.ok(await second.until(({ data }) => data.text === 'two, ' || data.text === 'One, two, '), 'the text is live')
  assert.equal(textOf(second.events), 'One, two, ')
  gate.resolve()
  await second.until(({ event_type: type }) => type === 'final')
  assert.equal(textOf(second.events), 'one, two, three.')
  assert.equal(finalOf(second.events).output?.content, 'one, two, three.')
  assert.equal(await second.until(() => true), null, 'the connection closes after final')
  assert.ok(
    second.events.every(({ id }) => id === null || id > Number(seen)),
    'no event comes twice',
  )
})

test('a reader who comes back after any event of an ended run gets the rest and the final event', async () => {
  const kit = await plain
  const { body } = await kit.run('Say hello.')
  const path = `GET /v1/agent/runs/${body.metadata.run_id}/events`
  const ask = (after?: number) => readEvents(kit, body.metadata.run_id, { accept: SSE, after })
  const all = await ask()
  assert.equal(textOf(all), 'Hello.')
  const ids = all.flatMap(({ id }) => (id === null ? [] : [id]))
  assert.ok(ids.length >= 4)
  for (const lastSeen of ids) {
    const rest = await ask(lastSeen)
    assert.deepEqual(finalOf(rest), finalOf(all), `after ${lastSeen}`)
    const fresh = rest.filter(({ id, event_type: type }) => id !== null && type !== 'final')
    assert.deepEqual(
      fresh,
      all.filter(({ id, event_type: type }) => id !== null && id > lastSeen && type !== 'final'),
    )
  }
  const beyond = await kit.call<{ error: { code: string } }>(path, {
    headers: { ...kit.headers, 'last-event-id': '999' },
  })
  assert.deepEqual([beyond.status, beyond.body.error.code], [400, 'INVALID_REQUEST'])
  for (const wrong of ['x', '-1', '1.5']) {
    assert.equal((await kit.call(path, { headers: { ...kit.headers, 'last-event-id': wrong } })).status, 400)
  }
})

test('an answered run is under way from the commit of the answer on, before a worker has claimed it', async () => {
  // Without models there is no worker that could claim the run.
  const kit = await createTestApp({ waits: { waitMs: 200 } })
  const { id: projectId } = await kit.createProject()
  const headers = { 'x-project-id': projectId }
  const start = { task: 'Paint it.', metadata: {}, contextId: null, requested: 'blue', ofProcess: null }
  const { id: runId } = await startSupervisor(kit.pool, projectId, start)
  const paused = { kind: 'run.paused', data: { pause_reason: 'human', summary: null } }
  await kit.services.journal.append({ runId, fence: null, events: [paused] })
  await kit.pool.query(
    `update agent_runs set status = 'paused', pause_reason = 'human', waits_for = 'human', ready_at = null, summary = 'Which?'
     where id = $1`,
    [runId],
  )
  const question = { taskId: newId(), projectId, runId, agentId: newId(), question: 'Which?' }
  await createAskHuman({ pool: kit.pool }).ask(question)
  const read = async () =>
    (await kit.call<AgentRunAnswer>(`GET /v1/agent/runs/${runId}`, { headers })).body.result.status
  assert.equal(await read(), 'ESCALATE')
  const body = { input: { task: 'Red.' }, options: { run_id: runId } }
  const answered = await kit.call<AgentRunAnswer>('POST /v1/agent/run', { headers, body })
  assert.deepEqual([answered.status, answered.body.result.status, answered.body.result.output], [202, 'RUNNING', null])
  assert.equal(await read(), 'RUNNING')
})

test('a run of another project is answered like an unknown one, and is not changed', async () => {
  const kit = await createSupervisor({ supervisor: [{ plan: [], action: 'escalate' }, finish()] })
  const { body: mine } = await kit.run('Paint it.')
  const other = await kit.createProject('Another')
  const { key: token } = await kit.createKey(other.id, 'member')
  for (const id of [mine.metadata.run_id, newId()]) {
    for (const [route, body] of [
      ['POST /v1/agent/run', { input: { task: 'Red.' }, options: { run_id: id } }],
      ['POST /v1/agent/run', { input: { task: 'Red.' }, options: { run_id: id, stream: true } }],
      [`GET /v1/agent/runs/${id}`],
      [`GET /v1/agent/runs/${id}/events`],
    ] as const) {
      const answer = await kit.call<{ error: { code: string } }>(route, { token, ...(body ? { body } : {}) })
      assert.deepEqual([answer.status, answer.body.error.code], [404, 'RUN_NOT_FOUND'], route)
    }
  }
  assert.equal((await kit.read(mine.metadata.run_id)).body.result.status, 'ESCALATE')
})

test('a server that closes cuts a stream without a final event', async () => {
  const { kit, gate } = await createHalting()
  const body = { input: { task: 'Count.' }, options: { stream: true } }
  const reader = await openStream(kit, '/v1/agent/run', { body })
  await reader.until(isToken)
  const closing = kit.app.close()
  await assert.rejects(
    reader.until(({ event_type: type }) => type === 'final'),
    /aborted|reset|hang up/,
  )
  gate.resolve()
  await closing
})
