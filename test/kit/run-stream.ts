// A reader of a run's server-sent events.
import type { Muster } from './process.ts'

export interface StreamedEvent {
  /** Absent for tokens. */
  id: number | null
  event: string
  data: Record<string, unknown>
}

export interface RunStream {
  /** The events with an id. */
  events: StreamedEvent[]
  /** All events, in the order of arrival. */
  all: StreamedEvent[]
}

export interface StreamOptions {
  after?: number
  /** The reader closes the connection as soon as this is true. */
  until?: (stream: RunStream) => boolean
  withinMs?: number
}

/** Reads until the server closes the stream, or until `until` is true. */
export async function readStream(
  muster: Muster,
  path: string,
  { after, until, withinMs = 60_000 }: StreamOptions = {},
): Promise<RunStream> {
  const stop = new AbortController()
  const answer = await fetch(new URL(path, muster.url), {
    signal: AbortSignal.any([stop.signal, AbortSignal.timeout(withinMs)]),
    headers: {
      authorization: `Bearer ${muster.adminToken()}`,
      ...(after === undefined ? {} : { 'last-event-id': String(after) }),
    },
  })
  if (answer.status !== 200 || !answer.body) throw new Error(`${answer.status}: ${await answer.text()}`)
  const stream: RunStream = { events: [], all: [] }
  let rest = ''
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + piece).split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      const event = parse(part)
      if (!event) continue
      stream.all.push(event)
      if (event.id !== null) stream.events.push(event)
      if (until?.(stream)) {
        stop.abort()
        return stream
      }
    }
  }
  return stream
}

function parse(text: string): StreamedEvent | null {
  const fields = new Map(text.split('\n').map((line) => [line.split(':', 1)[0] ?? '', line.replace(/^\w*: ?/, '')]))
  const data = fields.get('data')
  if (data === undefined) return null
  const id = fields.get('id')
  return { id: id === undefined ? null : Number(id), event: fields.get('event') ?? '', data: JSON.parse(data) }
}
