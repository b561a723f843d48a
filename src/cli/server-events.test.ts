import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readServerEvents, type ServerEvent } from './server-events.ts'

async function read(...pieces: (string | Uint8Array)[]): Promise<ServerEvent[]> {
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece)
      controller.close()
    },
  })
  const events: ServerEvent[] = []
  for await (const event of readServerEvents(body)) events.push(event)
  return events
}

const one = (data: string, id: string | null = null, event = 'message'): ServerEvent => ({ id, event, data })

const cases: [name: string, text: string, events: ServerEvent[]][] = [
  ['an event with all fields', 'id: 7\nevent: token\ndata: {"a":1}\n\n', [one('{"a":1}', '7', 'token')]],
  ['several events', 'data: a\n\ndata: b\n\n', [one('a'), one('b')]],
  ['data of several lines', 'data: a\ndata: b\ndata:\n\n', [one('a\nb\n')]],
  ['comments', ': keep-alive\n\n: again\ndata: a\n\n', [one('a')]],
  ['fields without a space, and with two', 'data:a\n\ndata:  b\n\n', [one('a'), one(' b')]],
  ['line ends of carriage returns', 'data: a\r\n\r\ndata: b\r\rdata: c\n\n', [one('a'), one('b'), one('c')]],
  ['an event without data', 'event: nothing\n\ndata: a\n\n', [one('a')]],
  ['unknown fields', 'retry: 100\nfoo: bar\ndata: a\n\n', [one('a')]],
  ['an id that holds a NUL', 'id: 1\0\ndata: a\n\n', [one('a')]],
  ['an event that is cut off', 'data: a\n\nid: 2\ndata: half', [one('a')]],
  ['an event whose blank line is missing', 'data: a\n', []],
  ['an empty stream', '', []],
  ['a colon in the data', 'data: a: b\n\n', [one('a: b')]],
]
for (const [name, text, events] of cases) {
  test(`reads ${name}`, async () => assert.deepEqual(await read(text), events))
  test(`reads ${name} byte by byte`, async () => {
    const bytes = new TextEncoder().encode(text)
    assert.deepEqual(await read(...Array.from(bytes, (byte) => Uint8Array.of(byte))), events)
  })
}

test('characters of several bytes may be cut in two', async () => {
  const bytes = new TextEncoder().encode('data: 雨 👍\n\n')
  for (let at = 1; at < bytes.length; at++) {
    assert.deepEqual(await read(bytes.slice(0, at), bytes.slice(at)), [one('雨 👍')])
  }
})

test('a large event in many pieces takes time in proportion to its size', async () => {
  const piece = 'x'.repeat(16_384)
  const pieces = ['data: ', ...Array.from({ length: 1_000 }, () => piece), '\n\n']
  const [event] = await read(...pieces)
  assert.equal(event?.data.length, 16_384_000)
})

test('a reader that leaves cancels the stream', async () => {
  let isCancelled = false
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode('data: a\n\n')),
    cancel: () => {
      isCancelled = true
    },
  })
  for await (const _ of readServerEvents(body)) break
  assert.ok(isCancelled)
})
