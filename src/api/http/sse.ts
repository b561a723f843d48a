// Server-sent events over one answer, or the same events as lines of JSON (NDJSON), or as the AI SDK's UI message
// stream. Events are not piled up: a reader that takes nothing while more and more comes is disconnected, and may come
// back with its Last-Event-ID.
import type { FastifyReply } from 'fastify'

interface ServerSentEvent {
  /** Absent if a reader cannot come back to this very event. */
  id?: number | string
  event: string
  data: Readonly<Record<string, unknown>>
}

export interface EventStream {
  /** Resolves when the reader may be sent more, and at once when the reader is gone. */
  send(...events: readonly ServerSentEvent[]): Promise<void>
  /** Sends the id alone, of a reader that has seen all events up to now. Only for server-sent events. */
  mark(id: string): Promise<void>
  isBlocked(): boolean
  /** Counts characters that came while the reader was blocked. */
  miss(characters: number): void
  end(): void
  /** Cuts the connection, so that the reader knows that the stream was not at its end. */
  cut(): void
}

/** ui: server-sent events that have data only; the last data is `[DONE]`. */
export type StreamFormat = 'sse' | 'ndjson' | 'ui'
export const CONTENT_TYPES = {
  sse: 'text/event-stream',
  ndjson: 'application/x-ndjson',
  ui: 'text/event-stream',
} as const

const HEARTBEAT_MS = 15_000
/** A reader for whom more characters than this are waiting has stopped reading. */
export const MOST_WAITING = 1_048_576

/** `signal` fires when the reader is gone or must be disconnected. */
export function openEventStream(
  reply: FastifyReply,
  {
    signal,
    heartbeatMs = HEARTBEAT_MS,
    format = 'sse',
  }: { signal: AbortSignal; heartbeatMs?: number | undefined; format?: StreamFormat | undefined },
): EventStream {
  const { raw } = reply
  let isBlocked = false
  let missed = 0
  const heartbeat = setInterval(() => {
    // A reader of lines of JSON would read a keep-alive as an event.
    if (!isBlocked && format !== 'ndjson') raw.write(': keep-alive\n\n')
  }, heartbeatMs)
  raw.once('close', () => clearInterval(heartbeat))
  reply.hijack()
  reply.headers({
    'content-type': `${CONTENT_TYPES[format]}; charset=utf-8`,
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) raw.setHeader(name, value)
  raw.flushHeaders()

  return {
    send: (...events) => write(events.map(WRITTEN[format]).join('')),
    // Readers that know nothing of ids without an event take the first line, and so all of it, for a comment.
    mark: (id) => write(`: mark\nid: ${id}\n\n`),
    isBlocked: () => isBlocked,
    miss(characters) {
      missed += characters
      if (missed > MOST_WAITING) raw.destroy()
    },
    end() {
      clearInterval(heartbeat)
      // A reader that has stopped reading could keep the connection open for any time.
      if (raw.destroyed || raw.writableNeedDrain) raw.destroy()
      else raw.end(format === 'ui' ? 'data: [DONE]\n\n' : '')
    },
    cut: () => raw.destroy(),
  }

  async function write(text: string): Promise<void> {
    if (signal.aborted || raw.write(text)) return
    isBlocked = true
    missed = 0
    await drained()
    isBlocked = false
  }

  function drained(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        raw.off('drain', done)
        signal.removeEventListener('abort', done)
        resolve()
      }
      raw.on('drain', done)
      signal.addEventListener('abort', done)
      if (signal.aborted) done()
    })
  }
}

const WRITTEN: Readonly<Record<StreamFormat, (event: ServerSentEvent) => string>> = {
  sse: asEvent,
  ndjson: ({ data }) => `${JSON.stringify(data)}\n`,
  ui: ({ data }) => `data: ${JSON.stringify(data)}\n\n`,
}

/** JSON has no line breaks of its own, so the data is one line. */
function asEvent({ id, event, data }: ServerSentEvent): string {
  const name = id === undefined ? '' : `id: ${id}\n`
  return `${name}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
