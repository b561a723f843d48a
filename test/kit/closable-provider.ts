// A provider that can be closed: it then answers 503 and asks for a long pause. While it is open, another one answers.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { serveLocally } from './local-server.ts'
import type { Cleanup } from './process.ts'

export interface ClosableProvider {
  readonly url: string
  close(): void
  open(): void
}

export const CLOSED = 'The kitchen is closed.'
const PAUSE_S = 90

/** `behind` is the address of the provider that answers. */
export async function startClosableProvider(t: Cleanup, behind: string): Promise<ClosableProvider> {
  let isClosed = true
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    if (isClosed) {
      response.writeHead(503, { 'content-type': 'application/json', 'retry-after': String(PAUSE_S) })
      response.end(JSON.stringify({ error: { message: CLOSED } }))
      return
    }
    const path = request.url?.replace(/^\/v1/, '') ?? ''
    const given = await fetch(`${behind}${path}`, { method: 'POST', body })
    response.writeHead(given.status, { 'content-type': given.headers.get('content-type') ?? 'application/json' })
    if (given.body) await pipeline(Readable.fromWeb(given.body as ReadableStream), response)
  }
  const origin = await serveLocally(t, answer)
  return {
    url: `${origin}/v1`,
    close: () => {
      isClosed = true
    },
    open: () => {
      isClosed = false
    },
  }
}
