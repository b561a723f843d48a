import { Readable } from 'node:stream'
import { z } from 'zod'
import type { Db, Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { addWorkers } from '../../flows/add-workers.ts'
import { cancelFlow } from '../../flows/cancel-flow.ts'
import { getFlowRun, listFlowRuns, readFlowRow } from '../../flows/flow-runs.ts'
import { getFlow, requireFlow } from '../../flows/flows.ts'
import { type NewFlowRun, startFlow } from '../../flows/start-flow.ts'
import { findFlowTemplate } from '../../flows/templates/templates.ts'
import { writeOutput, writeResults } from '../../flows/whole-output.ts'
import { getSettings } from '../../identity/settings.ts'
import { FLOW_CHANNEL, tellProcesses } from '../../journal/wake.ts'
import { conflict, invalidRequest } from '../../kernel/errors.ts'
import { durationField, idField, pageOf } from '../../kernel/fields.ts'
import { MOST_LEAVES } from '../../kernel/flow.ts'
import { type FlowRun, flowRunSchema, flowRunStatuses } from '../../kernel/flow-run.ts'
import { actorOf } from '../auth.ts'
import { errorSchema } from '../errors.ts'
import type { Once } from '../idempotency.ts'
import type { ProjectPlaces } from '../project-places.ts'
import type { FlowServices } from '../run-services.ts'
import type { App } from '../server.ts'
import { answers, emptyBody, listQuery, pathId, projectParams } from '../shapes.ts'

const tags = ['Flow runs']
export const flowRunParams = z.strictObject({ id: pathId, runId: pathId })
const count = z.int().min(1).max(MOST_LEAVES)

const startInput = z.strictObject({
  flow_id: idField.optional().describe('A stored flow; or give its tree as root.'),
  root: z.unknown().optional(),
  template: z.string().max(100).optional().describe('The name of a template.'),
  input: z.unknown().optional(),
  timeout: durationField.min(1).optional().describe('Instead of the setting flow_timeout.'),
  workers: count.optional().describe('The most leaves under way at once.'),
})
type StartInput = z.infer<typeof startInput>

export interface FlowRunRoutes {
  pool: Pool
  once: Once
  places: ProjectPlaces
  flows: FlowServices
}

export function addFlowRunRoutes(app: App, { pool, once, places, flows }: FlowRunRoutes): void {
  const read = (db: Db, projectId: string, runId: string): Promise<FlowRun> =>
    getFlowRun(db, projectId, runId, flows.leafLimit)

  app.post(
    '/api/projects/:id/flow-runs',
    {
      config: { access: 'member' },
      schema: {
        tags,
        summary: 'Start a flow',
        params: projectParams,
        body: startInput,
        response: answers(202, flowRunSchema),
      },
    },
    async (request, reply) => {
      const { id } = request.params
      reply.code(202)
      // Without an Idempotency-Key to keep, starts of many requests share one commit.
      if (request.headers['idempotency-key'] === undefined) {
        places.share(request)
        const run = await toStart(pool, { projectId: id, input: request.body, flows })
        return read(pool, id, await flows.start(run, actorOf(request)))
      }
      const { kept, replayed } = await once(request, async (tx) => {
        const run = await toStart(tx, { projectId: id, input: request.body, flows })
        const runId = await startFlow(tx, run, actorOf(request))
        if (flows.isAnnounced) await tellProcesses(tx, FLOW_CHANNEL, runId)
        return read(tx, id, runId)
      })
      if (replayed) reply.header('idempotency-replayed', 'true')
      else flows.onReady()
      return kept
    },
  )

  app.get(
    '/api/projects/:id/flow-runs',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'List the flow runs, newest first',
        params: projectParams,
        querystring: listQuery.extend({ flow_id: idField.optional(), status: z.enum(flowRunStatuses).optional() }),
        response: answers(200, pageOf(flowRunSchema)),
      },
    },
    (request) => {
      const { limit, cursor, ...filter } = request.query
      return listFlowRuns(pool, request.params.id, filter, { limit, cursor }, flows.leafLimit)
    },
  )

  app.get(
    '/api/projects/:id/flow-runs/:runId',
    {
      config: { access: 'viewer' },
      schema: { tags, summary: 'Read a flow run', params: flowRunParams, response: answers(200, flowRunSchema) },
    },
    (request) => read(pool, request.params.id, request.params.runId),
  )

  app.get(
    '/api/projects/:id/flow-runs/:runId/output',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'Read the whole output of a flow run, or its results, however large',
        params: flowRunParams,
        querystring: z.strictObject({ part: z.enum(['output', 'results']).default('output') }),
        response: {
          200: { description: 'The value.', content: { 'application/json': { schema: z.unknown() } } },
          default: errorSchema,
        },
      },
    },
    async (request, reply) => {
      const { id } = await readFlowRow(pool, request.params.id, request.params.runId)
      const write = request.query.part === 'results' ? writeResults : writeOutput
      return reply.type('application/json; charset=utf-8').send(Readable.from(write(pool, id)))
    },
  )

  app.post(
    '/api/projects/:id/flow-runs/:runId/cancel',
    {
      config: { access: 'member' },
      schema: {
        tags,
        summary: 'Cancel a flow run: nothing new begins, what is under way may end; one that has ended stays as it is',
        params: flowRunParams,
        body: emptyBody,
        response: answers(200, flowRunSchema),
      },
    },
    async (request) => {
      const { id, project_id } = await readFlowRow(pool, request.params.id, request.params.runId)
      const isNews = await inTransaction(pool, (tx) => cancelFlow(tx, project_id, id, actorOf(request)))
      if (isNews) flows.onReady()
      return read(pool, project_id, id)
    },
  )

  app.post(
    '/api/projects/:id/flow-runs/:runId/workers',
    {
      config: { access: 'member' },
      schema: {
        tags,
        summary: 'Let more leaves of a flow run be under way at once',
        params: flowRunParams,
        body: z.strictObject({ add: count }),
        response: answers(200, flowRunSchema),
      },
    },
    async (request) => {
      const run = await readFlowRow(pool, request.params.id, request.params.runId)
      const more = { add: request.body.add, usual: flows.leafLimit, actor: actorOf(request) }
      const isAdded = await inTransaction(pool, (tx) => addWorkers(tx, run.project_id, run.id, more))
      const now = await read(pool, run.project_id, run.id)
      if (!isAdded) throw conflict(`The flow run is ${now.status}: workers are of no use to it any more.`)
      return now
    },
  )
}

async function toStart(
  tx: Db,
  { projectId, input, flows }: { projectId: string; input: StartInput; flows: FlowServices },
): Promise<NewFlowRun> {
  const { flow_id: flowId } = input
  const ways = [flowId, input.root, input.template].filter((way) => way !== undefined)
  if (ways.length !== 1) {
    throw invalidRequest('Give one of flow_id, a stored flow, root, the tree itself, and template, the name of one.')
  }
  const flow = flowId === undefined ? null : await getFlow(tx, projectId, flowId)
  const template = input.template === undefined ? null : findFlowTemplate(input.template)
  if (input.template !== undefined && !template) throw invalidRequest(`There is no template called ${input.template}.`)
  const root = await requireFlow(tx, projectId, flow?.root ?? template?.root ?? input.root, flows.functions)
  const timeoutMs = input.timeout ?? (await getSettings(tx, projectId)).flow_timeout
  const run = { projectId, flowId: flow?.id ?? null, root, input: input.input ?? null, timeoutMs }
  return { ...run, workers: input.workers ?? null }
}
