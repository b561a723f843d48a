// The common part of the streams of runs and flow runs: the event after which a reader starts, and its right to go on.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { invalidRequest } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'
import { principalOf } from './auth.ts'
import { errorSchema } from './errors.ts'
import type { TrackRequest } from './long-requests.ts'
import type { OpenStreams } from './open-streams.ts'
import type { RunServices } from './run-services.ts'
import { type EventStream, openEventStream, type StreamFormat } from './sse.ts'
import type { StillAdmitted } from './still-admitted.ts'

export interface EventRoutes {
  log: Log
  track: TrackRequest
  stillAdmitted: StillAdmitted
  streams: OpenStreams
  services: RunServices
}

/** A revoked key stops working within five seconds, on open streams too. */
const RECHECK_MS = 2_500

export const eventHeaders = z.looseObject({
  'last-event-id': z
    .string()
    .optional()
    .describe('The id of the last event that the reader has seen; the stream goes on after it.'),
})

export const eventAnswers = (description: string) => ({
  200: { description, content: { 'text/event-stream': { schema: z.string() } } },
  default: errorSchema,
})

/** The seq after which a reader goes on. `hasEvent` tells whether the journal has an event of that seq. */
export async function startingPoint(
  lastSeen: unknown,
  { what, hasEnded, hasEvent }: { what: string; hasEnded: boolean; hasEvent: (seq: number) => Promise<boolean> },
): Promise<number> {
  if (lastSeen === undefined) return 0
  if (typeof lastSeen !== 'string' || !/^\d{1,15}$/.test(lastSeen)) {
    throw invalidRequest('Last-Event-ID must be the id of an event: a whole number.')
  }
  const seq = Number(lastSeen)
  if (seq === 0 || (await hasEvent(seq))) return seq
  if (hasEnded) throw invalidRequest(`Last-Event-ID: the ${what} has ended, and it has no event ${seq}.`)
  // Nobody can have seen an event that is not written yet, so the reader starts from the beginning.
  return 0
}

type Show = (stream: EventStream, signal: AbortSignal) => Promise<void>

/** Streams until `show` is done, the reader leaves, or the reader loses the right to read. */
export async function streamEvents(
  routes: EventRoutes,
  { request, reply, run }: { request: FastifyRequest; reply: FastifyReply; run: { id: string; project_id: string } },
  show: Show,
  format?: StreamFormat,
): Promise<FastifyReply> {
  const isAdmitted = (): Promise<boolean> => routes.stillAdmitted(request, run.project_id)
  return streamWhile(routes, { request, reply, isAdmitted, about: { run_id: run.id }, format }, show)
}

interface Streamed {
  request: FastifyRequest
  reply: FastifyReply
  /** Asked every few seconds: false ends the stream. */
  isAdmitted: () => Promise<boolean>
  /** The fields of a line in the log. */
  about?: Readonly<Record<string, string>>
  format?: StreamFormat | undefined
}

/** Streams until `show` is done, the reader leaves, or the reader is no longer admitted. */
export async function streamWhile(
  { log, track, streams, services }: Omit<EventRoutes, 'stillAdmitted'>,
  { request, reply, isAdmitted, about = {}, format }: Streamed,
  show: Show,
): Promise<FastifyReply> {
  // The reader has left meanwhile, and its closed connection would never end the timers.
  if (reply.raw.destroyed) return reply.hijack()
  streams.open(principalOf(request), reply)
  const signal = track(reply)
  const stream = openEventStream(reply, { signal, heartbeatMs: services.heartbeatMs, format })
  const recheck = setInterval(async () => {
    if (!(await isAdmitted().catch(() => true))) stream.cut()
  }, services.recheckMs ?? RECHECK_MS)
  reply.raw.once('close', () => clearInterval(recheck))
  try {
    if (request.method !== 'HEAD') await show(stream, signal)
    stream.end()
  } catch (error) {
    log.warn({ request_id: request.id, ...about, err: error }, 'a stream was cut; its reader may come back')
    stream.cut()
  }
  return reply
}
