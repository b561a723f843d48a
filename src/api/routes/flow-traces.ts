import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import type { EndedRuns } from '../../flows/history/ended-runs.ts'
import { exportFormats, exportTrace } from '../../flows/history/export-trace.ts'
import { readFlowRow } from '../../flows/history/flow-runs.ts'
import { flowMetricsSchema, metricsOf } from '../../flows/history/metrics.ts'
import { type FlowRecord, readRecord } from '../../flows/history/record.ts'
import { withSkippedItems } from '../../flows/history/skipped-items.ts'
import { flowTaskSchema, tasksOf, toFlowTask, traceOf, traceSchema } from '../../flows/history/trace.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import { pageOf } from '../../kernel/fields.ts'
import type { App } from '../http/app.ts'
import { errorSchema } from '../http/errors.ts'
import { routesOf } from '../http/routes-of.ts'
import type { FlowServices } from '../http/run-services.ts'
import { answers, listQuery } from '../http/shapes.ts'
import { flowRunParams } from './flow-runs.ts'

const openTo = routesOf('Flow runs')
type ExportFormat = (typeof exportFormats)[number]

export function addFlowTraceRoutes(
  app: App,
  { pool, ended, flows }: { pool: Pool; ended: EndedRuns; flows: FlowServices },
): void {
  /** The answer about an ended run is computed once. */
  async function factAbout<Value>(
    what: string,
    { id, runId }: { id: string; runId: string },
    find: (record: FlowRecord) => Value,
  ): Promise<Value> {
    const run = await readFlowRow(pool, id, runId)
    return ended.fact(what, run, async () => find(await readRecord(pool, id, runId, flows.patterns)))
  }

  app.get(
    '/api/projects/:id/flow-runs/:runId/tasks',
    openTo(
      'viewer',
      'List the tasks of a flow run, in the order in which they began; tasks that have not begun come last',
      {
        isHeavy: true,
        params: flowRunParams,
        querystring: listQuery,
        response: answers(200, pageOf(flowTaskSchema)),
      },
    ),
    async (request) => {
      const { limit, cursor } = request.query
      if (cursor !== undefined && !/^\d{1,9}$/.test(cursor))
        throw invalidRequest('cursor is not one that this list gave.')
      const tasks = await factAbout('tasks', request.params, tasksOf)
      const end = Number(cursor ?? 0) + limit
      const page = await withSkippedItems(pool, request.params.runId, tasks.slice(end - limit, end))
      return {
        items: page.map(toFlowTask),
        next_cursor: end < tasks.length ? String(end) : null,
      }
    },
  )

  app.get(
    '/api/projects/:id/flow-runs/:runId/trace',
    openTo('viewer', 'Read the trace of a flow run, or export it for other tools', {
      isHeavy: true,
      params: flowRunParams,
      querystring: z.strictObject({ format: z.enum(['json', ...exportFormats]).default('json') }),
      response: {
        200: {
          description: 'The trace as JSON, or in the wanted format: Chrome trace events, OTLP/JSON or CSV.',
          content: {
            'application/json': { schema: z.union([traceSchema, z.record(z.string(), z.unknown())]) },
            'text/csv': { schema: z.string() },
          },
        },
        default: errorSchema,
      },
    }),
    async (request, reply) => {
      const { format } = request.query
      if (format === 'json') {
        return reply.type('application/json; charset=utf-8').send(await factAbout('trace', request.params, traceOf))
      }
      const { contentType, text } = await factAbout(`trace as ${format}`, request.params, (record) =>
        traceAs(record, format),
      )
      return reply.type(contentType).send(text)
    },
  )

  app.get(
    '/api/projects/:id/flow-runs/:runId/metrics',
    openTo('viewer', 'Read the metrics of a flow run: its use of time and its bottlenecks', {
      isHeavy: true,
      params: flowRunParams,
      response: answers(200, flowMetricsSchema),
    }),
    (request) => factAbout('metrics', request.params, metricsIn),
  )
}

function traceAs(record: FlowRecord, format: ExportFormat): ReturnType<typeof exportTrace> {
  const { run } = record
  return exportTrace(
    {
      id: run.id,
      name: `flow ${run.flow_id ?? run.id}`,
      status: run.status,
      error: run.error,
      startedAt: run.started_at ?? run.created_at,
      until: endOf(record),
      tasks: tasksOf(record),
    },
    format,
  )
}

function metricsIn(record: FlowRecord): ReturnType<typeof metricsOf> {
  const { started_at: startedAt, duration, workers } = record.run
  return metricsOf({ tasks: tasksOf(record), startedAt, until: endOf(record), duration, workers })
}

const endOf = ({ run, readAt }: FlowRecord): Date => run.completed_at ?? readAt
