import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Db, Pool } from '../../db/pool.ts'
import { readFlowEvents } from '../../flows/flow-record.ts'
import { type FlowRunRow, flowHasEnded, readFlowRow } from '../../flows/flow-runs.ts'
import { followRun } from '../../journal/follow.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import { flowRunStatuses } from '../../kernel/flow-run.ts'
import type { Log } from '../../kernel/log.ts'
import { errorSchema } from '../errors.ts'
import type { TrackRequest } from '../long-requests.ts'
import { createPatientHub } from '../patient-hub.ts'
import type { RunServices } from '../run-services.ts'
import type { App } from '../server.ts'
import { type EventStream, openEventStream } from '../sse.ts'
import type { StillAdmitted } from '../still-admitted.ts'
import { flowRunParams } from './flow-runs.ts'

export interface FlowEventOptions {
  pool: Pool
  log: Log
  track: TrackRequest
  stillAdmitted: StillAdmitted
  services: RunServices
}

/** A key that is revoked stops working within five seconds, here too. */
const RECHECK_MS = 2_500

const lastKinds: ReadonlySet<string> = new Set(
  flowRunStatuses.filter((status) => flowHasEnded({ status })).map((status) => `flow.${status}`),
)

export function addFlowEventRoutes(app: App, options: FlowEventOptions): void {
  const { pool, log, track, services } = options
  app.get(
    '/api/projects/:id/flow-runs/:runId/events',
    {
      config: { access: 'viewer' },
      schema: {
        tags: ['Flow runs'],
        summary: "Follow a flow run's journal until it has ended",
        params: flowRunParams,
        headers: z.looseObject({
          'last-event-id': z
            .string()
            .optional()
            .describe('The id of the last event that was seen; the next ones follow.'),
        }),
        response: {
          200: {
            description: 'Events with the ids 1, 2, 3 …',
            content: { 'text/event-stream': { schema: z.string() } },
          },
          default: errorSchema,
        },
      },
    },
    async (request, reply) => {
      const run = await readFlowRow(pool, request.params.id, request.params.runId)
      const after = await startingPoint(pool, run, request.headers['last-event-id'])
      const signal = track(reply)
      const stream = openEventStream(reply, { signal, heartbeatMs: services.heartbeatMs })
      reply.raw.once('close', watchAdmission(options, request, run, stream))
      try {
        if (request.method !== 'HEAD') await show({ db: pool, services, stream, signal }, run, after)
        stream.end()
      } catch (error) {
        log.warn({ request_id: request.id, flow_run_id: run.id, err: error }, 'a stream was cut; its reader may return')
        stream.cut()
      }
      return reply
    },
  )
}

/** Answers the end of watching. */
function watchAdmission(
  { stillAdmitted, services }: FlowEventOptions,
  request: FastifyRequest,
  run: FlowRunRow,
  stream: EventStream,
): () => void {
  const recheck = setInterval(async () => {
    const isAdmitted = await stillAdmitted(request, run.project_id).catch(() => true)
    if (!isAdmitted) stream.cut()
  }, services.recheckMs ?? RECHECK_MS)
  return () => clearInterval(recheck)
}

async function startingPoint(db: Db, run: FlowRunRow, lastSeen: unknown): Promise<number> {
  if (lastSeen === undefined) return 0
  if (typeof lastSeen !== 'string' || !/^\d{1,15}$/.test(lastSeen)) {
    throw invalidRequest('Last-Event-ID must be the id of an event: a whole number.')
  }
  const seq = Number(lastSeen)
  if (seq === 0 || (await readFlowEvents(db, run.id, { after: seq - 1, upTo: seq, limit: 1 })).length > 0) return seq
  if (flowHasEnded(run)) throw invalidRequest(`Last-Event-ID: the flow run has ended, and it has no event ${seq}.`)
  // Nobody can have seen it yet, so nobody knows what was seen.
  return 0
}

interface Show {
  db: Db
  services: RunServices
  stream: EventStream
  signal: AbortSignal
}

async function show({ db, services, stream, signal }: Show, run: FlowRunRow, after: number): Promise<void> {
  // A run that has ended says nothing more: whoever has seen its last event is told so by the end.
  if (flowHasEnded(run) && after >= run.last_seq) return
  const soFar = (): null => null
  const { hub, onTaken } = createPatientHub({ hub: services.hub, soFar }, stream)
  for await (const followed of followRun({ db, hub, soFar, read: readFlowEvents }, run.id, { after, signal })) {
    if (followed.type === 'text') continue
    const { seq, kind, at, data } = followed.event
    const fields: Record<string, unknown> = JSON.parse(data)
    await stream.send({ id: seq, event: kind, data: { run_id: run.id, seq, at: at.toISOString(), ...fields } })
    onTaken()
    if (lastKinds.has(kind)) return
  }
}
