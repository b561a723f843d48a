import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Db, Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { getEnabledFlow, requireFlow } from '../../flows/definition/flows.ts'
import { type Adjustment, adjustFlow } from '../../flows/execution/adjust.ts'
import { cancelFlow } from '../../flows/execution/cancel.ts'
import { flowToResume } from '../../flows/execution/resume-flow.ts'
import { type NewFlowRun, prepareFlow, startFlow } from '../../flows/execution/start.ts'
import { flowHasEnded, getFlowRun, listFlowRuns, readFlowRow, readStarted } from '../../flows/history/flow-runs.ts'
import { writeOutput, writeResults } from '../../flows/history/whole-output.ts'
import { findFlowTemplate, flowTemplates } from '../../flows/templates/templates.ts'
import { getSettings } from '../../identity/settings.ts'
import { FLOW_CHANNEL, tellProcesses } from '../../journal/wake.ts'
import { conflict, invalidRequest } from '../../kernel/errors.ts'
import { durationField, idBeginningField, idField, pageOf } from '../../kernel/fields.ts'
import { innerField, MOST_LEAVES } from '../../kernel/flow.ts'
import { type FlowRun, flowRunSchema, flowRunStatuses } from '../../kernel/flow-run.ts'
import { didYouMean } from '../../kernel/nearest.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import { errorSchema } from '../http/errors.ts'
import type { Once } from '../http/idempotency.ts'
import type { TrackRequest } from '../http/long-requests.ts'
import { heedPreference, startHeaders } from '../http/prefer.ts'
import type { ProjectPlaces } from '../http/project-places.ts'
import { routesOf } from '../http/routes-of.ts'
import type { FlowServices, RunServices } from '../http/run-services.ts'
import { answers, emptyBody, listQuery, pathId, projectParams } from '../http/shapes.ts'
import { waitForFlowRun } from '../http/wait-for-run.ts'

const openTo = routesOf('Flow runs')
export const flowRunParams = z.strictObject({ id: pathId, runId: pathId })
const count = z.int().min(1).max(MOST_LEAVES)

export const workersInput = z.strictObject({ add: count })
export const startInput = z.strictObject({
  flow_id: idField.optional().describe('The id of a stored flow; root gives a tree instead.'),
  root: innerField.optional(),
  template: z.string().max(100).optional().describe('The name of a flow template.'),
  rerun_of: idField
    .optional()
    .describe('The id of a flow run: its stored flow is started once more, or its tree if it had no stored flow.'),
  input: z.unknown().optional(),
  timeout: durationField.min(1).optional().describe('The timeout of this run, instead of the setting flow_timeout.'),
  workers: count.optional().describe('The most leaves under way at once.'),
})
type StartInput = z.infer<typeof startInput>

export const adjustInput = z.strictObject({
  timeout: durationField.min(1).optional().describe('The time the run has, from its start.'),
  workers: count.optional().describe('The most leaves under way at once.'),
})

export const resumeFlowInput = z.strictObject({
  timeout: durationField
    .min(1)
    .optional()
    .describe('The time the new flow run has, instead of that of the one before.'),
})

export interface FlowRunRoutes {
  pool: Pool
  once: Once
  places: ProjectPlaces
  track: TrackRequest
  services: Pick<RunServices, 'hub'>
  flows: FlowServices
}

export function addFlowRunRoutes(app: App, options: FlowRunRoutes): void {
  const { pool, once: startOnce, places, track, services, flows } = options

  /** A repeated request that does not wait gets the first answer again; one that waits gets the run as it is now. */
  async function answerWhenEnded(
    request: FastifyRequest<{ Params: { id: string } }>,
    reply: FastifyReply,
    given: FlowRun,
    { isOld = false } = {},
  ): Promise<FlowRun> {
    const { id: projectId } = request.params
    const waitMs = heedPreference(request, reply)?.waitMs ?? 0
    reply.code(202)
    if (waitMs === 0) return given
    const now = (): Promise<FlowRun> => getFlowRun(pool, projectId, given.id, flows.leafLimit)
    const wait = { projectId, run: isOld ? await now() : given, signal: track(reply, waitMs) }
    const run = await waitForFlowRun({ db: pool, hub: services.hub }, wait, now)
    if (flowHasEnded(run)) reply.code(200)
    return run
  }

  app.post(
    '/api/projects/:id/flow-runs',
    openTo('member', 'Start a flow', {
      params: projectParams,
      headers: startHeaders,
      body: startInput,
      response: { 200: flowRunSchema, 202: flowRunSchema, default: errorSchema },
    }),
    async (request, reply) => {
      const { id } = request.params
      // Starts of many requests share one commit, unless an Idempotency-Key must be kept.
      if (request.headers['idempotency-key'] === undefined) {
        const checked = await toStart(pool, { projectId: id, input: request.body, flows })
        const run = await prepareFlow(pool, checked, flows.patterns)
        // From here on the request has no statement of its own before the shared one.
        places.share(request)
        const runId = await flows.start(run, actorOf(request))
        return answerWhenEnded(request, reply, await getFlowRun(pool, id, runId, flows.leafLimit))
      }
      const { kept, replayed } = await startOnce(request, async (tx) => {
        const run = await toStart(tx, { projectId: id, input: request.body, flows })
        const runId = await startFlow(tx, run, actorOf(request), flows.patterns)
        if (flows.isAnnounced) await tellProcesses(tx, FLOW_CHANNEL, runId)
        return getFlowRun(tx, id, runId, flows.leafLimit)
      })
      if (replayed) reply.header('idempotency-replayed', 'true')
      else flows.onReady()
      return answerWhenEnded(request, reply, kept, { isOld: replayed })
    },
  )

  app.get(
    '/api/projects/:id/flow-runs',
    openTo('viewer', 'List the flow runs, newest first', {
      isHeavy: true,
      params: projectParams,
      querystring: listQuery.extend({
        id: idBeginningField.optional().describe('The first letters of an id, 8 or more.'),
        flow_id: idField.optional(),
        status: z.enum(flowRunStatuses).optional(),
      }),
      response: answers(200, pageOf(flowRunSchema)),
    }),
    (request) => {
      const { limit, cursor, ...filter } = request.query
      return listFlowRuns(pool, request.params.id, filter, { limit, cursor }, flows.leafLimit)
    },
  )

  app.get(
    '/api/projects/:id/flow-runs/:runId',
    openTo('viewer', 'Read a flow run', { params: flowRunParams, response: answers(200, flowRunSchema) }),
    (request) => getFlowRun(pool, request.params.id, request.params.runId, flows.leafLimit),
  )

  app.get(
    '/api/projects/:id/flow-runs/:runId/output',
    openTo('viewer', 'Read the whole output of a flow run, or its results, of any size', {
      isHeavy: true,
      params: flowRunParams,
      querystring: z.strictObject({ part: z.enum(['output', 'results']).default('output') }),
      response: {
        200: { description: 'The value.', content: { 'application/json': { schema: z.unknown() } } },
        default: errorSchema,
      },
    }),
    async (request, reply) => {
      const { id } = await readFlowRow(pool, request.params.id, request.params.runId)
      const write = request.query.part === 'results' ? writeResults : writeOutput
      // One piece at a time is held. The first one is read in the place of this request.
      const pieces = Readable.from(write(pool, id), { highWaterMark: 1 })
      await once(pieces, 'readable')
      return reply.type('application/json; charset=utf-8').send(pieces)
    },
  )

  addResume(app, options, answerWhenEnded)
  addFlowRunActions(app, options)
}

type AnswerWhenEnded = (
  request: FastifyRequest<{ Params: { id: string; runId: string } }>,
  reply: FastifyReply,
  given: FlowRun,
  options?: { isOld?: boolean },
) => Promise<FlowRun>

function addResume(app: App, { once: startOnce, flows }: FlowRunRoutes, answerWhenEnded: AnswerWhenEnded): void {
  app.post(
    '/api/projects/:id/flow-runs/:runId/resume',
    openTo('member', 'Continue a flow run in a new one that keeps the finished steps', {
      params: flowRunParams,
      headers: startHeaders,
      body: resumeFlowInput.nullish(),
      response: { 200: flowRunSchema, 202: flowRunSchema, default: errorSchema },
    }),
    async (request, reply) => {
      const { id, runId: flowRunId } = request.params
      const { kept, replayed } = await startOnce(request, async (tx) => {
        const run = await flowToResume(tx, id, flowRunId, { timeoutMs: request.body?.timeout })
        const newId = await startFlow(tx, run, actorOf(request), flows.patterns)
        if (flows.isAnnounced) await tellProcesses(tx, FLOW_CHANNEL, newId)
        return getFlowRun(tx, id, newId, flows.leafLimit)
      })
      if (replayed) reply.header('idempotency-replayed', 'true')
      else flows.onReady()
      return answerWhenEnded(request, reply, kept, { isOld: replayed })
    },
  )
}

function addFlowRunActions(app: App, { pool, flows }: FlowRunRoutes): void {
  app.post(
    '/api/projects/:id/flow-runs/:runId/cancel',
    openTo(
      'member',
      'Cancel a flow run: no task begins any more, and tasks under way may end; an ended run stays as it is',
      {
        params: flowRunParams,
        body: emptyBody,
        response: answers(200, flowRunSchema),
      },
    ),
    async (request) => {
      const { id, project_id } = await readFlowRow(pool, request.params.id, request.params.runId)
      const isNews = await inTransaction(pool, (tx) => cancelFlow(tx, project_id, id, actorOf(request)))
      if (isNews) flows.onReady()
      return getFlowRun(pool, project_id, id, flows.leafLimit)
    },
  )

  app.post(
    '/api/projects/:id/flow-runs/:runId/workers',
    openTo('member', 'Let more leaves of a flow run be under way at once', {
      params: flowRunParams,
      body: workersInput,
      response: answers(200, flowRunSchema),
    }),
    (request) => adjust(request, { workers: { add: request.body.add, usual: flows.leafLimit } }),
  )

  app.patch(
    '/api/projects/:id/flow-runs/:runId',
    openTo('member', 'Change the time and the workers of a flow run that has not ended', {
      params: flowRunParams,
      body: adjustInput,
      response: answers(200, flowRunSchema),
    }),
    (request) => adjust(request, request.body),
  )

  async function adjust(
    request: FastifyRequest<{ Params: { id: string; runId: string } }>,
    change: Adjustment,
  ): Promise<FlowRun> {
    const { id: flowRunId, project_id: projectId } = await readFlowRow(pool, request.params.id, request.params.runId)
    const of = { projectId, flowRunId, actor: actorOf(request) }
    const isEmpty = change.timeout === undefined && change.workers === undefined
    const isChanged = !isEmpty && (await inTransaction(pool, (tx) => adjustFlow(tx, of, change)))
    const now = await getFlowRun(pool, projectId, flowRunId, flows.leafLimit)
    if (!isChanged && flowHasEnded(now)) throw conflict(`The flow run is ${now.status}: it needs nothing any more.`)
    flows.onReady()
    return now
  }
}

async function toStart(
  tx: Db,
  { projectId, input, flows }: { projectId: string; input: StartInput; flows: FlowServices },
): Promise<NewFlowRun> {
  const ways = [input.flow_id, input.root, input.template, input.rerun_of].filter((way) => way !== undefined)
  if (ways.length !== 1) {
    throw invalidRequest(
      'Give exactly one of flow_id (a stored flow), root (a tree), template (the name of a template) and rerun_of (a flow run).',
    )
  }
  const earlier = input.rerun_of === undefined ? null : await readStarted(tx, projectId, input.rerun_of)
  const flowId = input.flow_id ?? earlier?.flowId ?? undefined
  const flow = flowId === undefined ? null : await getEnabledFlow(tx, projectId, flowId)
  const template = input.template === undefined ? null : findFlowTemplate(input.template)
  if (input.template !== undefined && !template) {
    const names = flowTemplates.map(({ name }) => name)
    throw invalidRequest(`There is no template called ${input.template}.${didYouMean(input.template, names)}`)
  }
  const root = await requireFlow(tx, projectId, flow?.root ?? template?.root ?? earlier?.root ?? input.root, flows)
  const timeoutMs = input.timeout ?? (await getSettings(tx, projectId)).flow_timeout
  const run = { projectId, flowId: flow?.id ?? null, root, input: input.input ?? null, timeoutMs }
  return { ...run, workers: input.workers ?? null }
}
