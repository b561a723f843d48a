// A stand-in for the server: each connection is a list of events, and the way it ends.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiClient } from './client.ts'
import { CommandFailure, exitCodes, unreachable } from './exit-codes.ts'
import { followEvents } from './follow-events.ts'
import { readServerEvents } from './server-events.ts'

interface Connection {
  /** Ids of events; 0 is an event without an id. */
  send?: readonly number[]
  end: 'closes' | 'is cut' | 'goes silent' | Error
}

function serve(connections: readonly Connection[]) {
  const asked: (string | null)[] = []
  const open: ApiClient['open'] = async (_path, { headers, signal } = {}) => {
    asked.push(headers?.['last-event-id'] ?? null)
    const connection = connections[asked.length - 1]
    if (!connection) return assert.fail('there is no such connection')
    const { send = [], end } = connection
    if (end instanceof Error) throw end
    const encoder = new TextEncoder()
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const id of send) controller.enqueue(encoder.encode(`${id ? `id: ${id}\n` : ''}data: ${id}\n\n`))
        if (end === 'closes') controller.close()
        signal?.addEventListener('abort', () => controller.error(signal.reason), { once: true })
      },
      // The pieces before the cut have been taken.
      pull(controller) {
        if (end === 'is cut') controller.error(new TypeError('terminated'))
      },
    })
    return new Response(body)
  }
  return { asked, client: { open } }
}

const quick = { firstPauseMs: 1, longestPauseMs: 2, silenceMs: 5_000, patienceMs: 5_000 }

async function follow(
  connections: readonly Connection[],
  { timing = {}, signal = new AbortController().signal, over = connections.length } = {},
) {
  const { client, asked } = serve(connections)
  const troubles: string[] = []
  const seen: number[] = []
  let failure: unknown = null
  const isOver = async (): Promise<boolean> => asked.length >= over
  const options = {
    signal,
    isOver,
    onTrouble: (state: string) => void troubles.push(state),
    timing: { ...quick, ...timing },
  }
  try {
    for await (const { data } of followEvents(client, '/events', options)) seen.push(Number(data))
  } catch (error) {
    failure = error
  }
  return { seen, asked, troubles, failure }
}

test('a stream that closes after the last event is over', async () => {
  const { seen, asked, troubles } = await follow([{ send: [1, 0, 2], end: 'closes' }])
  assert.deepEqual([seen, asked, troubles], [[1, 0, 2], [null], []])
})

test('after a cut the reader comes back with the id of the last event that had one', async () => {
  const { seen, asked, troubles, failure } = await follow([
    { send: [1, 2, 0, 0], end: 'is cut' },
    { end: unreachable('No server runs.') },
    { end: unreachable('No server runs.') },
    { send: [0, 3], end: 'is cut' },
    { send: [4], end: 'closes' },
  ])
  assert.equal(failure, null)
  assert.deepEqual(seen, [1, 2, 0, 0, 0, 3, 4])
  assert.deepEqual(asked, [null, '2', '2', '2', '3'])
  assert.deepEqual(troubles, ['lost', 'back', 'lost', 'back'], 'each trouble is told once')
})

test('a server that stops closes the stream too; the run is not over, and the reader comes back', async () => {
  const { seen, asked } = await follow([
    { send: [1], end: 'closes' },
    { send: [2], end: 'closes' },
  ])
  assert.deepEqual(
    [seen, asked],
    [
      [1, 2],
      [null, '1'],
    ],
  )
})

test('a connection that is silent for too long is given up: nobody may have told us that it was cut', async () => {
  const { seen, asked, failure } = await follow(
    [
      { send: [1], end: 'goes silent' },
      { send: [2], end: 'closes' },
    ],
    { timing: { silenceMs: 30 } },
  )
  assert.equal(failure, null)
  assert.deepEqual(
    [seen, asked],
    [
      [1, 2],
      [null, '1'],
    ],
  )
})

test('a refusal ends the following at once', async () => {
  const refused = new CommandFailure(exitCodes.refused, 'The key was revoked.', { code: 'UNAUTHENTICATED' })
  const { asked, failure } = await follow([{ send: [1], end: 'is cut' }, { end: refused }])
  assert.equal(failure, refused)
  assert.equal(asked.length, 2)
})

test('a server that stays away is given up after a time, with its last failure', async () => {
  const away = unreachable('No server runs.')
  const many = Array.from({ length: 1_000 }, () => ({ end: away }))
  const { failure, troubles } = await follow(many, { timing: { patienceMs: 40 } })
  assert.equal(failure, away)
  assert.deepEqual(troubles, ['lost'])
})

test('Ctrl-C ends the following, also during a pause between two tries', async () => {
  for (const end of ['goes silent', unreachable('No server runs.')] as const) {
    const stop = new AbortController()
    const following = follow([{ end }], { signal: stop.signal, timing: { firstPauseMs: 60_000 } })
    setTimeout(() => stop.abort(new Error('Interrupted.')), 20)
    const { failure } = await following
    assert.match(String(failure), /Interrupted/)
  }
})

test('the stand-in sends what the reader reads', async () => {
  const { client } = serve([{ send: [1, 0], end: 'closes' }])
  const answer = await client.open('/')
  const ids: (string | null)[] = []
  for await (const { id } of readServerEvents(answer.body ?? assert.fail())) ids.push(id)
  assert.deepEqual(ids, ['1', null])
})
