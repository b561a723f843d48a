import type { Pool } from '../../db/pool.ts'
import { readFlowEvents } from '../../flows/flow-record.ts'
import { type FlowRunRow, flowHasEnded, readFlowRow } from '../../flows/flow-runs.ts'
import { followRun } from '../../journal/follow.ts'
import { flowRunStatuses } from '../../kernel/flow-run.ts'
import { type EventRoutes, eventAnswers, eventHeaders, startingPoint, streamEvents } from '../follow-events.ts'
import { createPatientHub } from '../patient-hub.ts'
import type { App } from '../server.ts'
import type { EventStream } from '../sse.ts'
import { flowRunParams } from './flow-runs.ts'

export interface FlowEventOptions extends EventRoutes {
  pool: Pool
}

const lastKinds: ReadonlySet<string> = new Set(
  flowRunStatuses.filter((status) => flowHasEnded({ status })).map((status) => `flow.${status}`),
)

export function addFlowEventRoutes(app: App, options: FlowEventOptions): void {
  const { pool } = options
  app.get(
    '/api/projects/:id/flow-runs/:runId/events',
    {
      config: { access: 'viewer' },
      schema: {
        tags: ['Flow runs'],
        summary: "Follow a flow run's journal until it has ended",
        params: flowRunParams,
        headers: eventHeaders,
        response: eventAnswers('Events with the ids 1, 2, 3 …'),
      },
    },
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
  // A run that has ended writes no more events, so the stream of a reader who has seen the last one closes at once.
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
