// Follows a stream of events through cut connections and restarts of the server. Each event with an id comes once and
// in order; the text under way comes again from its start after a reconnect, and its offsets tell the new part.
import type { ApiClient } from './client.ts'
import { CommandFailure, exitCodes } from './exit-codes.ts'
import { readServerEvents, type ServerEvent } from './server-events.ts'

export interface FollowEventsOptions {
  signal: AbortSignal
  /** A server that stops closes its streams as one whose run has ended; this tells the difference. */
  isOver: () => Promise<boolean>
  /** Called once when the connection is lost, and once when events come again. */
  onTrouble: (state: 'lost' | 'back', reason?: string) => void
  timing?: Partial<FollowTiming>
}

interface FollowTiming {
  /** The server sends a comment every 15 seconds. After a longer silence the connection is taken for dead. */
  silenceMs: number
  firstPauseMs: number
  longestPauseMs: number
  /** After this time without an answer the reader gives up. */
  patienceMs: number
}

const usualTiming: FollowTiming = { silenceMs: 45_000, firstPauseMs: 250, longestPauseMs: 3_000, patienceMs: 300_000 }

export async function* followEvents(
  client: Pick<ApiClient, 'open'>,
  path: string,
  { signal, isOver, onTrouble, timing = {} }: FollowEventsOptions,
): AsyncGenerator<ServerEvent> {
  const { silenceMs, firstPauseMs, longestPauseMs, patienceMs } = { ...usualTiming, ...timing }
  let lastId: string | null = null
  let pauseMs = firstPauseMs
  let lostAt: number | null = null
  for (;;) {
    const silence = createSilenceGuard(silenceMs, signal)
    try {
      const headers = lastId === null ? {} : { 'last-event-id': lastId }
      const answer = await client.open(path, { headers, signal: silence.signal })
      if (lostAt !== null) onTrouble('back')
      lostAt = null
      pauseMs = firstPauseMs
      for await (const event of readServerEvents(silence.guard(answer.body))) {
        lastId = event.id ?? lastId
        yield event
      }
      if (await isOver()) return
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof CommandFailure && error.exitCode !== exitCodes.unreachable) throw error
      if (lostAt === null) onTrouble('lost', error instanceof Error ? error.message : undefined)
      lostAt ??= performance.now()
      if (performance.now() - lostAt > patienceMs) throw error
    } finally {
      silence.end()
    }
    await pause(pauseMs, signal)
    pauseMs = Math.min(longestPauseMs, pauseMs * 2)
  }
}

/** Aborts a request whose body is silent for too long: a cut connection may tell nobody that it was cut. */
function createSilenceGuard(silenceMs: number, signal: AbortSignal) {
  const silent = new AbortController()
  const onSilence = (): void => silent.abort(new Error('The server is silent.'))
  let timer = setTimeout(onSilence, silenceMs)
  return {
    signal: AbortSignal.any([signal, silent.signal]),
    guard: (body: ReadableStream<Uint8Array> | null): ReadableStream<Uint8Array> => {
      const watch = new TransformStream<Uint8Array, Uint8Array>({
        transform(piece, controller) {
          clearTimeout(timer)
          timer = setTimeout(onSilence, silenceMs)
          controller.enqueue(piece)
        },
      })
      return (body ?? emptyStream()).pipeThrough(watch)
    },
    end: (): void => clearTimeout(timer),
  }
}

const emptyStream = (): ReadableStream<Uint8Array> => new ReadableStream({ start: (controller) => controller.close() })

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
  signal.throwIfAborted()
}
