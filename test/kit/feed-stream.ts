// A reader of the feed of changes, over a real connection.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { until } from './until.ts'

export interface FeedEvent {
  id: string
  event: 'change' | 'reset'
  data: { kind: string; id: string; project_id?: string; status: string; at: string }
  /** The time of arrival, by the clock of `performance`. */
  cameAt: number
}

export interface FeedStream {
  status: number
  headers: IncomingMessage['headers']
  /** All events so far, in the order of arrival. */
  events: FeedEvent[]
  /** The changes of one thing so far. */
  of(id: string): FeedEvent[]
  /** The statuses of one thing so far. */
  statuses(id: string): string[]
  /** The id with which a reader would come back now, as browsers keep it. */
  lastId(): string
  isClosed(): boolean
  /** Waits until the thing was told in this status. */
  sees(id: string, status: string): Promise<FeedEvent>
  closes(): Promise<void>
  /** Takes nothing more from the connection, or takes again. */
  pause(): void
  resume(): void
  leave(): void
}

/** Resolves when the answer has begun: everything that changes from then on is told. */
export async function openFeed(url: string, headers: Record<string, string>): Promise<FeedStream> {
  const sent = httpRequest(url, { headers, agent: false })
  sent.on('error', () => {})
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage] // as node:http emits it
  const events: FeedEvent[] = []
  let lastId = ''
  let isClosed = false
  let rest = ''
  response.setEncoding('utf8')
  response.on('error', () => {})
  response.on('close', () => {
    isClosed = true
  })
  response.on('data', (piece: string) => {
    const blocks = (rest + piece).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map((line) => [line.split(':', 1)[0] ?? '', line.replace(/^\w*: ?/, '')]),
      )
      lastId = fields.get('id') ?? lastId
      const data = fields.get('data')
      if (data === undefined) continue
      const event = fields.get('event')
      assert.ok(event === 'change' || event === 'reset', block)
      events.push({ id: fields.get('id') ?? '', event, data: JSON.parse(data), cameAt: performance.now() })
    }
  })
  const stream: FeedStream = {
    status: response.statusCode ?? 0,
    headers: response.headers,
    events,
    of: (id) => events.filter(({ event, data }) => event === 'change' && data.id === id),
    statuses: (id) => stream.of(id).map(({ data }) => data.status),
    lastId: () => lastId,
    isClosed: () => isClosed,
    sees: async (id, status) => {
      const find = (): FeedEvent | undefined => stream.of(id).find(({ data }) => data.status === status)
      await until(() => find() !== undefined, `${id} is told as ${status}`, 20_000)
      return find() ?? assert.fail()
    },
    closes: () => until(() => isClosed, 'the stream is closed', 20_000),
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    leave: () => void sent.destroy(),
  }
  if (stream.status === 200) await until(() => lastId !== '', 'the stream tells its place', 20_000)
  return stream
}
