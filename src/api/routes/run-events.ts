import { z } from 'zod'
import type { Db, Pool } from '../../db/pool.ts'
import type { StoredEvent } from '../../journal/entries.ts'
import { followRun } from '../../journal/follow.ts'
import { readEvents } from '../../journal/read.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'
import { hasEnded, type Run } from '../../kernel/run.ts'
import { finalKinds } from '../../kernel/run-event.ts'
import { getRun } from '../../runs/read-runs.ts'
import { errorSchema } from '../errors.ts'
import type { TrackRequest } from '../long-requests.ts'
import { createPatientHub } from '../patient-hub.ts'
import type { RunServices } from '../run-services.ts'
import type { App } from '../server.ts'
import { pathId } from '../shapes.ts'
import { type EventStream, openEventStream } from '../sse.ts'
import type { StillAdmitted } from '../still-admitted.ts'

export interface RunEventOptions {
  pool: Pool
  log: Log
  track: TrackRequest
  stillAdmitted: StillAdmitted
  services: RunServices
}

/** A key that is revoked stops working within five seconds, here too. */
const RECHECK_MS = 2_500

export function addRunEventRoutes(app: App, options: RunEventOptions): void {
  const { pool, log, track, services, stillAdmitted } = options
  app.get(
    '/api/projects/:id/runs/:runId/events',
    {
      config: { access: 'viewer' },
      schema: {
        tags: ['Runs'],
        summary: "Follow a run's journal and the text under way, until the run has ended",
        params: z.strictObject({ id: pathId, runId: pathId }),
        headers: z.looseObject({
          'last-event-id': z
            .string()
            .optional()
            .describe('The id of the last event that was seen; the next ones follow.'),
        }),
        response: {
          200: {
            description: 'Events with the ids 1, 2, 3 …, and tokens without one.',
            content: { 'text/event-stream': { schema: z.string() } },
          },
          default: errorSchema,
        },
      },
    },
    async (request, reply) => {
      const run = await getRun(pool, request.params.id, request.params.runId)
      const after = await startingPoint(pool, run, request.headers['last-event-id'])
      const signal = track(reply)
      const stream = openEventStream(reply, { signal, heartbeatMs: services.heartbeatMs })
      const recheck = setInterval(async () => {
        const isAdmitted = await stillAdmitted(request, run.project_id).catch(() => true)
        if (!isAdmitted) stream.cut()
      }, services.recheckMs ?? RECHECK_MS)
      reply.raw.once('close', () => clearInterval(recheck))
      try {
        if (request.method !== 'HEAD') await show({ db: pool, services, stream, signal }, run, after)
        stream.end()
      } catch (error) {
        log.warn({ request_id: request.id, run_id: run.id, err: error }, 'a stream was cut; its reader may come back')
        stream.cut()
      }
      return reply
    },
  )
}

async function startingPoint(db: Db, run: Run, lastSeen: unknown): Promise<number> {
  if (lastSeen === undefined) return 0
  if (typeof lastSeen !== 'string' || !/^\d{1,15}$/.test(lastSeen)) {
    throw invalidRequest('Last-Event-ID must be the id of an event: a whole number.')
  }
  const seq = Number(lastSeen)
  if (seq === 0 || (await readEvents(db, run.id, { after: seq - 1, upTo: seq, limit: 1 })).length > 0) return seq
  if (hasEnded(run)) throw invalidRequest(`Last-Event-ID: the run has ended, and it has no event ${seq}.`)
  // Nobody can have seen it yet, so nobody knows what was seen.
  return 0
}

interface Show {
  db: Db
  services: RunServices
  stream: EventStream
  signal: AbortSignal
}

async function show({ db, services, stream, signal }: Show, run: Run, after: number): Promise<void> {
  if (hasEnded(run) && !(await hasMore(db, run.id, after))) return
  const { hub, onTaken } = createPatientHub(services, stream)
  for await (const followed of followRun({ ...services, db, hub }, run.id, { after, signal })) {
    if (followed.type === 'text') {
      const { runId, ...text } = followed.text
      await stream.send({ event: 'token', data: { run_id: runId, ...text } })
      onTaken()
      continue
    }
    const { seq, kind, at, data } = followed.event
    const fields: Record<string, unknown> = JSON.parse(data)
    await stream.send({ id: seq, event: kind, data: { run_id: run.id, seq, at: at.toISOString(), ...fields } })
    onTaken()
    if (fields.run_id === undefined && (await isLast(db, run, followed.event))) return
  }
}

/** A pause may be an end or a wait, and a wait may be over by now: nothing is written after an end. */
async function isLast(db: Db, run: Run, { kind, seq }: StoredEvent): Promise<boolean> {
  if (kind !== 'run.paused') return finalKinds.has(kind)
  const now = await getRun(db, run.project_id, run.id)
  return hasEnded(now) && !(await hasMore(db, run.id, seq))
}

const hasMore = async (db: Db, runId: string, after: number): Promise<boolean> =>
  (await readEvents(db, runId, { after, limit: 1 })).length > 0
