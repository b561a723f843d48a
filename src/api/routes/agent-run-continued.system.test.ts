// The events of a run that was continued: by a person's answer, or after its model was unavailable. Its journal has
// several ends. A reader from the start gets the whole history and the newest end only.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  FORMS,
  finalOf,
  isFinal,
  isToken,
  openStream,
  readEvents,
  SSE,
  type Streamed,
  streamTask,
  textOf,
} from '../../../test/kit/agent-stream.ts'
import { createSupervisor, delegate, finish } from '../../../test/kit/supervisor.ts'

type Kit = Awaited<ReturnType<typeof createSupervisor>>

const escalate = () => ({ plan: [], action: 'escalate' })
const idsOf = (events: readonly Streamed[]): number[] => events.flatMap(({ id }) => (id === null ? [] : [id]))
const told = (events: readonly Streamed[]) =>
  events.map(({ event_type: type, data: { run_id: _, ...data } }) => ({ type, ...data }))
/** The nodes in the order in which the reader heard of them. */
const nodesOf = (events: readonly Streamed[]) =>
  events.flatMap(({ data }) => (typeof data.active_agent === 'string' ? [data.active_agent] : []))

async function answerInInbox(kit: Kit, result: string): Promise<void> {
  const { items } = await kit.get<{ items: { id: string }[] }>('/tasks?kind=escalation&status=pending')
  const answered = await kit.call(`PATCH ${kit.base}/tasks/${items[0]?.id}`, { body: { status: 'completed', result } })
  assert.equal(answered.status, 200, answered.text)
}

/** A run that asks twice, and is answered: over /v1, then in the inbox. */
async function createAnswered(finalizer: unknown = { textParts: ['It is ', 'red.'], text: '' }) {
  const kit = await createSupervisor({
    supervisor: [escalate(), delegate('research_agent'), escalate(), finish()],
    escalation: ['Which colour?', 'Dark or light?'],
    finalizer: () => finalizer,
  })
  const first = await streamTask(kit, 'Paint it.', { accept: SSE })
  const { run_id: runId } = finalOf(first.events)
  const second = await streamTask(kit, 'Red, please.', { accept: SSE, options: { run_id: runId } })
  return { kit, runId, first: first.events, second: second.events }
}

describe('a run that was escalated twice and answered twice is done', () => {
  const created = createAnswered().then(async (run) => {
    const third = await openStream(run.kit, `/v1/agent/runs/${run.runId}/events`, {
      headers: { 'last-event-id': String(idsOf(run.second).at(-1)) },
    })
    await third.until(isFinal)
    assert.deepEqual(told(third.events), told(run.second.slice(-1)), 'the second question is at rest')
    await answerInInbox(run.kit, 'Dark.')
    while ((await run.kit.read(run.runId)).body.result.status === 'RUNNING')
      await new Promise((resolve) => setTimeout(resolve, 5))
    return run
  })

  test('each request got the end of its own part', async () => {
    const { first, second, runId } = await created
    assert.deepEqual(
      [first, second].map((events) => [
        finalOf(events).status,
        finalOf(events).output?.content,
        finalOf(events).run_id,
      ]),
      [
        ['ESCALATE', 'Which colour?', runId],
        ['ESCALATE', 'Dark or light?', runId],
      ],
    )
    assert.deepEqual(told(second)[0], { type: 'status_update', status: 'RUNNING' })
    assert.ok((idsOf(second)[0] ?? 0) > (idsOf(first).at(-1) ?? 0), 'no event was sent twice')
  })

  for (const [form, accept] of Object.entries(FORMS)) {
    test(`from the start: the whole history, and the newest final only (${form})`, async () => {
      const { kit, runId, first, second } = await created
      const events = await readEvents(kit, runId, { accept })
      const final = finalOf(events)
      assert.deepEqual([final.status, final.output?.content], ['DONE', 'It is red.'])
      assert.equal(textOf(events), 'It is red.')
      assert.deepEqual(nodesOf(events), [
        'supervisor',
        'hitl_escalation',
        'research_agent',
        'hitl_escalation',
        'finalizer',
      ])
      // The stream begins with the events that the requests before got, without their ends.
      const before = [...told(first.slice(0, -1)), ...told(second.slice(0, -1))]
      assert.deepEqual(told(events).slice(0, before.length), before)
      assert.equal(events.filter(({ data }) => data.status === 'RUNNING' && !('active_agent' in data)).length, 2)
    })

    test(`a reader after any event gets the rest, and the newest final only (${form})`, async () => {
      const { kit, runId } = await created
      const all = await readEvents(kit, runId, { accept: SSE })
      const ends = (await created).first.slice(-1).concat((await created).second.slice(-1))
      for (const after of [...idsOf(all), ...idsOf(ends)].sort((a, b) => a - b)) {
        const rest = await readEvents(kit, runId, { accept, after })
        assert.deepEqual(finalOf(rest), finalOf(all), `after ${after}`)
        const updates = (events: readonly Streamed[]) =>
          told(events.filter(({ event_type: type, data }) => type === 'status_update' && data.reset === undefined))
        assert.deepEqual(updates(rest), updates(all.filter(({ id }) => id !== null && id > after)), `after ${after}`)
      }
    })
  }

  test('the ids of the stream are those of the journal, each once, in order', async () => {
    const { kit, runId } = await created
    const ids = idsOf(await readEvents(kit, runId, { accept: SSE }))
    assert.deepEqual(
      ids,
      [...new Set(ids)].sort((a, b) => a - b),
    )
  })
})

for (const [form, accept] of Object.entries(FORMS)) {
  test(`while the continued run is under way, a reader from the start follows it to its end (${form})`, async () => {
    const gate = Promise.withResolvers<void>()
    const finalizer = { textParts: ['It is ', 'red.'], text: '', waitFor: gate.promise }
    const { kit, runId, first } = await createAnswered(finalizer)
    await answerInInbox(kit, 'Dark.')
    const path = `/v1/agent/runs/${runId}/events`
    const seen = String(idsOf(first).at(-1))
    const readers = [
      await openStream(kit, path, { accept }),
      await openStream(kit, path, { accept, headers: { 'last-event-id': seen } }),
    ]
    for (const reader of readers) {
      await reader.until(isToken)
      assert.ok(!reader.events.some(isFinal), 'a question that was answered is no end')
    }
    gate.resolve()
    for (const reader of readers) {
      assert.ok(await reader.until(isFinal))
      assert.equal(await reader.until(() => true), null, 'the connection closes')
      assert.deepEqual([finalOf(reader.events).status, textOf(reader.events)], ['DONE', 'It is red.'])
    }
    assert.deepEqual(
      readers.map(({ events }) => nodesOf(events).filter((node) => node === 'hitl_escalation').length),
      [2, 1],
    )
  })

  test(`a run that is continued after UNAVAILABLE shows its history and its newest end (${form})`, async () => {
    let isAway = true
    const away = { textParts: ['Half an '], text: '', fail: { message: 'Away.', isRetryable: true } }
    const kit = await createSupervisor(
      { finalizer: () => (isAway ? away : { textParts: ['Half an hour, ', 'I think.'], text: '' }) },
      { firstBackoffMs: 1 },
    )
    const first = await streamTask(kit, 'How long?', { accept })
    const { run_id: runId, status, error } = finalOf(first.events)
    assert.deepEqual([status, error?.code, textOf(first.events)], ['FAILED', 'UNAVAILABLE', 'Half an '])
    const calls = kit.asked('finalizer').length
    assert.equal(calls, 5)
    const again = await streamTask(kit, 'Try again.', { accept, options: { run_id: runId } })
    assert.deepEqual(comparable(again.events), comparable(first.events), 'the model is still unavailable')
    assert.deepEqual(comparable(await readEvents(kit, runId, { accept })), comparable(first.events))
    assert.equal(kit.asked('finalizer').length, 2 * calls, 'a continued run tries as often as at first')
    isAway = false
    const last = await streamTask(kit, 'And again.', { accept, options: { run_id: runId } })
    const whole = await readEvents(kit, runId, { accept })
    for (const events of [last.events, whole]) {
      assert.deepEqual([finalOf(events).status, finalOf(events).output?.content], ['DONE', 'Half an hour, I think.'])
      assert.equal(textOf(events), 'Half an hour, I think.')
    }
    assert.equal(nodesOf(whole).filter((node) => node === 'finalizer').length, 3)
  })

  test(`a reader who sees a pause after it is over gets no end for it (${form})`, async (t) => {
    const { kit, runId } = await createAnswered()
    // The reader has read the pause, and is held before it reads the state of the run.
    const query = kit.pool.query.bind(kit.pool)
    const held = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    let reads = 0
    t.mock.method(kit.pool, 'query', async (...args: Parameters<typeof query>) => {
      if (/c.checkpoint_id desc limit 1/.test(String(args[0])) && ++reads === 2) {
        reached.resolve()
        await held.promise
      }
      return query(...args)
    })
    const reading = readEvents(kit, runId, { accept })
    await reached.promise
    t.mock.restoreAll()
    await answerInInbox(kit, 'Dark.')
    while ((await kit.read(runId)).body.result.status === 'RUNNING')
      await new Promise((resolve) => setTimeout(resolve, 5))
    held.resolve()
    const events = await reading
    assert.deepEqual([finalOf(events).status, textOf(events)], ['DONE', 'It is red.'])
  })
}

const comparable = (events: readonly Streamed[]) => {
  const { status, error } = finalOf(events)
  return { status, code: error?.code, message: error?.message }
}
