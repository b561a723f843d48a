import type { Pool } from '../../db/pool.ts'
import { type FlowRunRow, flowHasEnded, lastFlowKinds, readFlowRow } from '../../flows/history/flow-runs.ts'
import { readFlowEvents } from '../../flows/history/record.ts'
import { followRun } from '../../journal/follow.ts'
import type { App } from '../http/app.ts'
import { type EventRoutes, eventAnswers, eventHeaders, startingPoint, streamEvents } from '../http/follow-events.ts'
import { createPatientHub } from '../http/patient-hub.ts'
import { routesOf } from '../http/routes-of.ts'
import type { EventStream } from '../http/sse.ts'
import { flowRunParams } from './flow-runs.ts'

const openTo = routesOf('Flow runs')

export interface FlowEventOptions extends EventRoutes {
  pool: Pool
}

export function addFlowEventRoutes(app: App, options: FlowEventOptions): void {
  const { pool } = options
  app.get(
    '/api/projects/:id/flow-runs/:runId/events',
    openTo('viewer', "Follow a flow run's journal until it has ended", {
      params: flowRunParams,
      headers: eventHeaders,
      response: eventAnswers('Events with the ids 1, 2, 3 …'),
    }),
    async (request, reply) => {
      const run = await readFlowRow(pool, request.params.id, request.params.runId)
      const after = await startingPoint(request.headers['last-event-id'], {
        what: 'flow run',
        hasEnded: flowHasEnded(run),
        hasEvent: async (seq) =>
          (await readFlowEvents(pool, run.id, { after: seq - 1, upTo: seq, limit: 1 })).length > 0,
      })
      return streamEvents(options, { request, reply, run }, (stream, signal) =>
        show(options, { run, after, stream, signal }),
      )
    },
  )
}

interface Shown {
  run: FlowRunRow
  after: number
  stream: EventStream
  signal: AbortSignal
}

async function show({ pool: db, services }: FlowEventOptions, { run, after, stream, signal }: Shown): Promise<void> {
  // A run that has ended writes no more events, so the stream of a reader who has seen the last event closes at once.
  if (flowHasEnded(run) && after >= run.last_seq) return
  const soFar = (): null => null
  const { hub, onTaken } = createPatientHub({ hub: services.hub, soFar }, stream)
  for await (const followed of followRun({ db, hub, soFar, read: readFlowEvents }, run.id, { after, signal })) {
    if (followed.type === 'text') continue
    const { seq, kind, at, data } = followed.event
    const fields: Record<string, unknown> = JSON.parse(data)
    await stream.send({ id: seq, event: kind, data: { run_id: run.id, seq, at: at.toISOString(), ...fields } })
    onTaken()
    if (lastFlowKinds.has(kind)) return
  }
}
