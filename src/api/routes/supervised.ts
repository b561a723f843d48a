// The two routes to the supervisor, `/v1/agent/run` and `/v1/agent/chat`, begin and stream a run in the same way.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { recordAudit } from '../../audit/record.ts'
import type { Db, Pool } from '../../db/pool.ts'
import type { FollowOptions } from '../../journal/follow.ts'
import type { Run } from '../../kernel/run.ts'
import { answerAs, type Continuation } from '../../supervisor/start.ts'
import { actorOf, projectOf } from '../http/auth.ts'
import { type EventRoutes, streamEvents } from '../http/follow-events.ts'
import type { Once } from '../http/idempotency.ts'
import { createPatientHub } from '../http/patient-hub.ts'
import type { StreamFormat } from '../http/sse.ts'

export interface SupervisedRoutes extends EventRoutes {
  pool: Pool
  once: Once
  systemVariant: string | null
}

/** A run that a request began; the stream of its answer begins after the event `after`. */
export interface Begun {
  runId: string
  after: number
}

type Begin = (tx: Db, parts: Continuation) => Promise<{ run: Run; after: number; isRepeated?: boolean }>

/** Starts or continues a run, once per Idempotency-Key, and writes that to the audit log. */
export async function beginSupervised(
  { once, services }: SupervisedRoutes,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  begin: Begin,
): Promise<Begun> {
  const actor = actorOf(request)
  const { kept, replayed } = await once(request, async (tx): Promise<Begun> => {
    const { run, after, isRepeated = false } = await begin(tx, { journal: services.journal, answer: answerAs(actor) })
    if (!isRepeated) {
      await recordAudit(tx, {
        action: after === 0 ? 'run.start' : 'run.continue',
        actor,
        projectId: projectOf(request),
        targetType: 'run',
        targetId: run.id,
        details: { trigger: run.trigger.type },
      })
    }
    return { runId: run.id, after }
  })
  if (replayed) reply.header('idempotency-replayed', 'true')
  else services.onReady()
  services.hub.poke(kept.runId)
  return kept
}

interface SupervisedEvent {
  id?: number
  event: string
  data: Readonly<Record<string, unknown>>
  isLast: boolean
}

/** A stream without its last event is cut off, so that its reader knows that this was not the end, and comes back. */
export function streamSupervised(
  options: SupervisedRoutes,
  {
    request,
    reply,
    run,
    format,
  }: {
    request: FastifyRequest
    reply: FastifyReply
    run: { id: string; project_id: string }
    format: StreamFormat
  },
  follow: (source: FollowOptions & { db: Db }, signal: AbortSignal) => AsyncIterable<SupervisedEvent>,
): Promise<FastifyReply> {
  const { pool, services } = options
  reply.header('x-run-id', run.id)
  return streamEvents(
    options,
    { request, reply, run },
    async (events, signal) => {
      const { hub, onTaken } = createPatientHub(services, events)
      let hasEnded = false
      for await (const { isLast, ...event } of follow({ ...services, db: pool, hub }, signal)) {
        await events.send(event)
        onTaken()
        hasEnded = isLast
      }
      if (!hasEnded) events.cut()
    },
    format,
  )
}
