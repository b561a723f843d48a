import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { recordAudit } from '../../audit/record.ts'
import type { Db, Pool } from '../../db/pool.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import { fault } from '../../kernel/fault.ts'
import { idField, pageOf } from '../../kernel/fields.ts'
import {
  forkInput,
  hasEnded,
  type Run,
  resumeInput,
  runSchema,
  runStatuses,
  stepSchema,
  triggerInput,
} from '../../kernel/run.ts'
import { cancelRuns } from '../../runs/cancel.ts'
import { forkRun } from '../../runs/fork.ts'
import { getRun, listRuns } from '../../runs/read-runs.ts'
import { resumeRun } from '../../runs/resume.ts'
import { type StartOptions, startRun } from '../../runs/start.ts'
import { listSteps } from '../../runs/steps.ts'
import { actorOf } from '../auth.ts'
import { errorSchema } from '../errors.ts'
import type { Once } from '../idempotency.ts'
import type { TrackRequest } from '../long-requests.ts'
import type { ProjectPlaces } from '../project-places.ts'
import type { RunServices } from '../run-services.ts'
import type { App } from '../server.ts'
import { answers, emptyBody, listQuery, pathId, projectParams, requireId } from '../shapes.ts'
import { isSettled, waitForRun } from '../wait-for-run.ts'

const tags = ['Runs']
const agentParams = z.strictObject({ id: pathId, agentId: pathId })
const runParams = z.strictObject({ id: pathId, runId: pathId })
const runQuery = listQuery.extend({
  agent_id: idField.optional(),
  status: z.enum(runStatuses).optional(),
  parent_run_id: idField.optional(),
  flow_run_id: idField.optional().describe('Runs of the leaves of this flow run.'),
  task_id: idField.optional().describe('Attempts at this task.'),
})
const startHeaders = z.looseObject({
  prefer: z.string().optional().describe('respond-async: answer 202 at once instead of waiting for the run.'),
  'idempotency-key': z.string().optional().describe('The same key and body give the same run for 24 h.'),
})
/** 200: the run has ended or is paused; 202: the run goes on, and the answer is its present state. */
const startAnswers = { 200: runSchema, 202: runSchema, default: errorSchema }

const WAIT_MS = 600_000
const CANCEL_WAIT_MS = 2_000

export interface RunRouteOptions {
  pool: Pool
  once: Once
  track: TrackRequest
  places: ProjectPlaces
  services: RunServices
}

export function addRunRoutes(app: App, options: RunRouteOptions): void {
  const { pool, services } = options

  app.post(
    '/api/projects/:id/agents/:agentId/trigger',
    {
      config: { access: 'member', showsRuns: true },
      schema: {
        tags,
        summary: 'Start a run of the agent and wait for it',
        params: agentParams,
        headers: startHeaders,
        body: triggerInput,
        response: startAnswers,
      },
    },
    (request, reply) => {
      const { id } = request.params
      const agentId = requireId(request.params.agentId, 'agent')
      const { resume_run_id: pausedId, ...given } = request.body
      const { input, timeout: timeoutMs, max_steps: maxSteps } = given
      const start = { input, timeoutMs, maxSteps, trigger: { type: 'manual' } } as const
      if (pausedId === undefined && request.headers['idempotency-key'] === undefined) {
        return startTogether(options, request, reply, agentId, start)
      }
      return startAndAnswer(options, request, reply, async (tx) => {
        if (pausedId === undefined) return startRun(tx, id, agentId, start)
        const paused = await getRun(tx, id, pausedId)
        if (paused.agent_id !== agentId) throw invalidRequest('resume_run_id is a run of another agent.')
        return resumeRun(tx, id, pausedId, given)
      })
    },
  )

  app.get(
    '/api/projects/:id/runs',
    {
      config: { access: 'viewer', isHeavy: true, showsRuns: true },
      schema: {
        tags,
        summary: 'List the runs, newest first',
        params: projectParams,
        querystring: runQuery,
        response: answers(200, pageOf(runSchema)),
      },
    },
    (request) => {
      const { limit, cursor, ...filter } = request.query
      return listRuns(pool, request.params.id, filter, { limit, cursor })
    },
  )

  app.get(
    '/api/projects/:id/runs/:runId',
    {
      config: { access: 'viewer', showsRuns: true },
      schema: { tags, summary: 'Read a run', params: runParams, response: answers(200, runSchema) },
    },
    (request) => getRun(pool, request.params.id, request.params.runId),
  )

  app.get(
    '/api/projects/:id/runs/:runId/steps',
    {
      config: { access: 'viewer', isHeavy: true },
      schema: {
        tags,
        summary: "List a run's model calls and tool calls, oldest first",
        params: runParams,
        querystring: listQuery,
        response: answers(200, pageOf(stepSchema)),
      },
    },
    async (request) => {
      const run = await getRun(pool, request.params.id, request.params.runId)
      return listSteps(pool, run.id, request.query)
    },
  )

  app.post(
    '/api/projects/:id/runs/:runId/cancel',
    {
      config: { access: 'member', showsRuns: true },
      schema: {
        tags,
        summary: 'Cancel a run and its sub-runs; one that has ended stays as it is',
        params: runParams,
        body: emptyBody,
        response: answers(200, runSchema),
      },
    },
    async (request, reply) => {
      const run = await getRun(pool, request.params.id, request.params.runId)
      if (hasEnded(run)) return run
      await cancelRuns({ pool, journal: services.journal }, run.project_id, [run.id])
      await recordAudit(pool, noteOf('run.cancel', request, run))
      services.hub.poke(run.id)
      // The worker stops the run within a moment, and the answer then shows the stopped run.
      const signal = options.track(reply, services.cancelWaitMs ?? CANCEL_WAIT_MS)
      return waitForRun({ db: pool, ...services }, await getRun(pool, run.project_id, run.id), signal)
    },
  )

  app.post(
    '/api/projects/:id/runs/:runId/resume',
    {
      config: { access: 'member', showsRuns: true },
      schema: {
        tags,
        summary: 'Go on where a paused run stopped, in a new run, and wait for it',
        params: runParams,
        headers: startHeaders,
        body: resumeInput.nullish(),
        response: startAnswers,
      },
    },
    (request, reply) =>
      startAndAnswer(options, request, reply, async (tx) => {
        const paused = await getRun(tx, request.params.id, request.params.runId)
        return resumeRun(tx, paused.project_id, paused.id, request.body ?? {})
      }),
  )

  app.post(
    '/api/projects/:id/runs/:runId/fork',
    {
      config: { access: 'member', showsRuns: true },
      schema: {
        tags,
        summary: "Start a new run from a point of this run's journal, and wait for it",
        params: runParams,
        headers: startHeaders,
        body: forkInput,
        response: startAnswers,
      },
    },
    (request, reply) =>
      startAndAnswer(options, request, reply, async (tx) => {
        const source = await getRun(tx, request.params.id, request.params.runId)
        return forkRun(tx, source.project_id, source.id, request.body)
      }),
  )
}

/** A committed run is accepted: neither a client that leaves nor a server that closes ends it. */
async function startAndAnswer(
  { pool, once, track, services }: RunRouteOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  start: (tx: Db) => Promise<Run>,
): Promise<Run> {
  const { id: projectId } = request.params as { id: string } // every route of this file has it
  let started: Run | null = null
  const { kept, replayed } = await once(request, async (tx) => {
    started = await start(tx)
    await recordAudit(tx, noteOf('run.start', request, started))
    return { run: started }
  })
  if (replayed) reply.header('idempotency-replayed', 'true')
  else services.onReady()
  // A repeated request that does not wait gets the first answer again; one that waits gets the run as it is now.
  const isAsync = prefersAsync(request.headers.prefer)
  const run = started ?? (isAsync ? kept.run : await getRun(pool, projectId, kept.run.id))
  return answerWhenSettled({ pool, track, services }, request, reply, run)
}

/** Without an Idempotency-Key to keep, starts of many requests share one commit. */
async function startTogether(
  { pool, track, places, services }: RunRouteOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  agentId: string,
  start: StartOptions,
): Promise<Run> {
  const { id: projectId } = request.params as { id: string } // every route of this file has it
  places.share(request)
  const { type: trigger } = start.trigger
  const note = (runId: string) =>
    noteOf('run.start', request, { id: runId, project_id: projectId, agent_id: agentId, trigger: { type: trigger } })
  const run = await services.starter.start(projectId, agentId, { ...start, note })
  await fault('api.after_commit_before_reply')
  services.onReady()
  return answerWhenSettled({ pool, track, services }, request, reply, run)
}

async function answerWhenSettled(
  { pool, track, services }: Pick<RunRouteOptions, 'pool' | 'track' | 'services'>,
  request: FastifyRequest,
  reply: FastifyReply,
  run: Run,
): Promise<Run> {
  if (prefersAsync(request.headers.prefer)) {
    reply.code(202).header('preference-applied', 'respond-async')
    return run
  }
  const now = await waitForRun({ db: pool, ...services }, run, track(reply, services.waitMs ?? WAIT_MS))
  reply.code(isSettled(now) ? 200 : 202)
  return now
}

/** RFC 7240: a list of preferences, each with parameters of its own. */
const prefersAsync = (header: string | string[] | undefined): boolean =>
  [header]
    .flat()
    .flatMap((each) => each?.split(',') ?? [])
    .some((preference) => /^\s*respond-async\s*(;|$)/i.test(preference))

function noteOf(
  action: string,
  request: FastifyRequest,
  run: Pick<Run, 'id' | 'project_id' | 'agent_id'> & { trigger: { type: string } },
) {
  const details = { agent_id: run.agent_id, trigger: run.trigger.type }
  return { action, actor: actorOf(request), projectId: run.project_id, targetType: 'run', targetId: run.id, details }
}
