import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { Fetch } from '../egress/egress.ts'

export interface McpFetchOptions {
  maxBytes: number
  /** Called if an answer ended before it was complete. May also be called for an answered request. */
  onLost(requestId: number, reason: string): void
}

/** Long enough for the SDK to have read the last event of an answer that is over. */
const SETTLE_MS = 100

/** The most bytes of an error answer: its status is the news, and the text goes into a message. */
const MOST_ERROR_BYTES = 65_536

/**
 * The transport reads answers of any size, and a broken stream leaves its caller waiting. Here each answer is bounded
 * by its bytes after decompression, and its end is reported.
 */
export function createMcpFetch(fetch: Fetch, { maxBytes, onLost }: McpFetchOptions): FetchLike {
  return async (url, init) => {
    const response = await fetch(url, init)
    if (response.body === null) return response
    const { status, statusText, headers } = response
    if (!response.ok) return new Response(beginningOf(response.body), { status, statusText, headers })
    const isStream = /^text\/event-stream/i.test(headers.get('content-type') ?? '')
    const requestId = isStream ? requestIdOf(init?.body) : null
    const body = bounded(response.body, maxBytes, ({ isResumable, reason }) => {
      // A stream with event ids is picked up again by the transport.
      if (requestId !== null && !isResumable) setTimeout(() => onLost(requestId, reason), SETTLE_MS).unref()
    })
    return new Response(body, { status, statusText, headers })
  }
}

function beginningOf(source: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  let left = MOST_ERROR_BYTES
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read()
      if (value) controller.enqueue(value.subarray(0, left))
      left -= value?.byteLength ?? 0
      if (!done && left > 0) return
      controller.close()
      await reader.cancel()
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

function bounded(
  source: ReadableStream<Uint8Array>,
  maxBytes: number,
  onEnd: (end: { isResumable: boolean; reason: string }) => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  let bytes = 0
  let isResumable = false
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) {
          onEnd({ isResumable, reason: 'its answer ended before it was complete' })
          controller.close()
          return
        }
        bytes += value.byteLength
        if (bytes > maxBytes) {
          await reader.cancel()
          isResumable = false
          throw new Error(`its answer has more than ${maxBytes} bytes`)
        }
        isResumable ||= /^id:/m.test(Buffer.from(value).subarray(0, 1_024).toString('latin1'))
        controller.enqueue(value)
      } catch (error) {
        const reason = bytes > maxBytes && error instanceof Error ? error.message : 'the connection was lost'
        onEnd({ isResumable, reason })
        controller.error(error)
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

/** Only a message that expects an answer has an id and a method. */
function requestIdOf(body: unknown): number | null {
  if (typeof body !== 'string') return null
  const message: unknown = JSON.parse(body)
  if (message === null || typeof message !== 'object' || !('id' in message) || !('method' in message)) return null
  return typeof message.id === 'number' ? message.id : null
}
