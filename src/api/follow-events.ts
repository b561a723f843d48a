// The common part of the streams of runs and of flow runs: the event a reader starts after, and its right to go on
// reading.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { invalidRequest } from '../kernel/errors.ts'
import type { Log } from '../kernel/log.ts'
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
  'last-event-id': z.string().optional().describe('The id of the last event that was seen; the next ones follow.'),
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

/** Streams until `show` is done, the reader leaves, or the reader loses the right to read. */
export async function streamEvents(
  { log, track, stillAdmitted, streams, services }: EventRoutes,
  { request, reply, run }: { request: FastifyRequest; reply: FastifyReply; run: { id: string; project_id: string } },
  show: (stream: EventStream, signal: AbortSignal) => Promise<void>,
  format?: StreamFormat,
): Promise<FastifyReply> {
  // The reader has left meanwhile, and no event of its connection would end the timers.
  if (reply.raw.destroyed) return reply.hijack()
  streams.open(principalOf(request), reply)
  const signal = track(reply)
  const stream = openEventStream(reply, { signal, heartbeatMs: services.heartbeatMs, format })
  const recheck = setInterval(async () => {
    const isAdmitted = await stillAdmitted(request, run.project_id).catch(() => true)
    if (!isAdmitted) stream.cut()
  }, services.recheckMs ?? RECHECK_MS)
  reply.raw.once('close', () => clearInterval(recheck))
  try {
    if (request.method !== 'HEAD') await show(stream, signal)
    stream.end()
  } catch (error) {
    log.warn({ request_id: request.id, run_id: run.id, err: error }, 'a stream was cut; its reader may come back')
    stream.cut()
  }
  return reply
}
