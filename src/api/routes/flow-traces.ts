import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import type { EndedRuns } from '../../flows/ended-runs.ts'
import { exportFormats, exportTrace } from '../../flows/export-trace.ts'
import { flowMetricsSchema, metricsOf } from '../../flows/flow-metrics.ts'
import { type FlowRecord, readRecord } from '../../flows/flow-record.ts'
import { readFlowRow } from '../../flows/flow-runs.ts'
import { flowTaskSchema, tasksOf, traceOf, traceSchema } from '../../flows/trace.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import { pageOf } from '../../kernel/fields.ts'
import { errorSchema } from '../errors.ts'
import type { App } from '../server.ts'
import { answers, listQuery } from '../shapes.ts'
import { flowRunParams } from './flow-runs.ts'

const tags = ['Flow runs']
type ExportFormat = (typeof exportFormats)[number]

export function addFlowTraceRoutes(app: App, { pool, ended }: { pool: Pool; ended: EndedRuns }): void {
  /** The answer about a run that has ended is computed once. */
  async function told<Value>(
    what: string,
    { id, runId }: { id: string; runId: string },
    find: (record: FlowRecord) => Value,
  ): Promise<Value> {
    const run = await readFlowRow(pool, id, runId)
    return ended.told(what, run, async () => find(await readRecord(pool, id, runId)))
  }

  app.get(
    '/api/projects/:id/flow-runs/:runId/tasks',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'List the tasks of a flow run, in the order in which they began; those that have not come last',
        params: flowRunParams,
        querystring: listQuery,
        response: answers(200, pageOf(flowTaskSchema)),
      },
    },
    async (request) => {
      const { limit, cursor } = request.query
      if (cursor !== undefined && !/^\d{1,9}$/.test(cursor))
        throw invalidRequest('cursor is not one that this list gave.')
      const tasks = await told('tasks', request.params, tasksOf)
      const end = Number(cursor ?? 0) + limit
      return {
        items: tasks.slice(end - limit, end).map(({ busy: _, ...task }) => task),
        next_cursor: end < tasks.length ? String(end) : null,
      }
    },
  )

  app.get(
    '/api/projects/:id/flow-runs/:runId/trace',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'Read what a flow run did and when, or export it for the tools of others',
        params: flowRunParams,
        querystring: z.strictObject({ format: z.enum(['json', ...exportFormats]).default('json') }),
        response: {
          200: {
            description: 'The trace; as Chrome trace events, as OTLP/JSON and as CSV where that was asked for.',
            content: {
              'application/json': { schema: z.union([traceSchema, z.record(z.string(), z.unknown())]) },
              'text/csv': { schema: z.string() },
            },
          },
          default: errorSchema,
        },
      },
    },
    async (request, reply) => {
      const { format } = request.query
      if (format === 'json') {
        return reply.type('application/json; charset=utf-8').send(await told('trace', request.params, traceOf))
      }
      const { contentType, text } = await told(`trace as ${format}`, request.params, (record) =>
        traceAs(record, format),
      )
      return reply.type(contentType).send(text)
    },
  )

  app.get(
    '/api/projects/:id/flow-runs/:runId/metrics',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'Read how well a flow run used its time, and what held it up',
        params: flowRunParams,
        response: answers(200, flowMetricsSchema),
      },
    },
    (request) => told('metrics', request.params, metricsIn),
  )
}

function traceAs(record: FlowRecord, format: ExportFormat): ReturnType<typeof exportTrace> {
  const { run } = record
  return exportTrace(
    {
      ...{ id: run.id, name: `flow ${run.flow_id ?? run.id}`, status: run.status, error: run.error },
      ...{ startedAt: run.started_at ?? run.created_at, until: endOf(record), tasks: tasksOf(record) },
    },
    format,
  )
}

function metricsIn(record: FlowRecord): ReturnType<typeof metricsOf> {
  const { started_at: startedAt, duration, workers } = record.run
  return metricsOf({ tasks: tasksOf(record), startedAt, until: endOf(record), duration, workers })
}

const endOf = ({ run, readAt }: FlowRecord): Date => run.completed_at ?? readAt
