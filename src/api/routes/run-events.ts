import { z } from 'zod'
import type { Db, Pool } from '../../db/pool.ts'
import type { StoredEvent } from '../../journal/entries.ts'
import { followRun } from '../../journal/follow.ts'
import { readEvents } from '../../journal/read.ts'
import { hasEnded, type Run } from '../../kernel/run.ts'
import { finalKinds } from '../../kernel/run-event.ts'
import { getRun } from '../../runs/read-runs.ts'
import type { App } from '../http/app.ts'
import { type EventRoutes, eventAnswers, eventHeaders, startingPoint, streamEvents } from '../http/follow-events.ts'
import { createPatientHub } from '../http/patient-hub.ts'
import { routesOf } from '../http/routes-of.ts'
import type { RunServices } from '../http/run-services.ts'
import { pathId } from '../http/shapes.ts'
import type { EventStream } from '../http/sse.ts'

const openTo = routesOf('Runs')

export interface RunEventOptions extends EventRoutes {
  pool: Pool
}

export function addRunEventRoutes(app: App, options: RunEventOptions): void {
  const { pool, services } = options
  app.get(
    '/api/projects/:id/runs/:runId/events',
    openTo('viewer', "Follow a run's journal and the text under way, until the run has ended", {
      params: z.strictObject({ id: pathId, runId: pathId }),
      headers: eventHeaders,
      response: eventAnswers('Events with the ids 1, 2, 3 …, and tokens without an id.'),
    }),
    async (request, reply) => {
      const run = await getRun(pool, request.params.id, request.params.runId)
      const after = await startingPoint(request.headers['last-event-id'], {
        what: 'run',
        hasEnded: hasEnded(run),
        hasEvent: async (seq) => (await readEvents(pool, run.id, { after: seq - 1, upTo: seq, limit: 1 })).length > 0,
      })
      return streamEvents(options, { request, reply, run }, (stream, signal) =>
        show({ db: pool, services, stream, signal }, run, after),
      )
    },
  )
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

/** A pause may be the end of a run, or a wait that is over by now. Only an end is never followed by another event. */
async function isLast(db: Db, run: Run, { kind, seq }: StoredEvent): Promise<boolean> {
  if (kind !== 'run.paused') return finalKinds.has(kind)
  const now = await getRun(db, run.project_id, run.id)
  return hasEnded(now) && !(await hasMore(db, run.id, seq))
}

const hasMore = async (db: Db, runId: string, after: number): Promise<boolean> =>
  (await readEvents(db, runId, { after, limit: 1 })).length > 0
