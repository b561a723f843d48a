import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { recordAudit } from '../../audit/record.ts'
import { inTime } from '../../db/in-time.ts'
import type { Db, Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { listSameCalls } from '../../flows/history/same-calls.ts'
import { tryNow } from '../../journal/provider-outages.ts'
import { conflict, invalidRequest, unavailable } from '../../kernel/errors.ts'
import { fault } from '../../kernel/fault.ts'
import { filledText, idBeginningField, idField, instantFilter, pageOf } from '../../kernel/fields.ts'
import {
  forkedRunSchema,
  forkInput,
  hasEnded,
  pauseReasons,
  type Run,
  type RunEffects,
  resumeInput,
  runEffectsSchema,
  runSchema,
  runStatuses,
  runWaitSchema,
  stepSchema,
  triggerInput,
} from '../../kernel/run.ts'
import { cancelRun } from '../../runs/cancel.ts'
import { listEffects, listEffectsAfter } from '../../runs/effects.ts'
import { forkRun, mayRepeat } from '../../runs/fork.ts'
import { listRuns, NO_PARENT, type RunFilter } from '../../runs/list-runs.ts'
import { getRun } from '../../runs/read-runs.ts'
import { resumeRun } from '../../runs/resume.ts'
import { type StartOptions, startRun } from '../../runs/start.ts'
import { listSteps } from '../../runs/steps.ts'
import { listWaits } from '../../runs/waits.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import { errorSchema } from '../http/errors.ts'
import type { Once } from '../http/idempotency.ts'
import type { TrackRequest } from '../http/long-requests.ts'
import { heedPreference, MOST_WAIT_MS, preferenceOf, startHeaders } from '../http/prefer.ts'
import type { ProjectPlaces } from '../http/project-places.ts'
import { routesOf } from '../http/routes-of.ts'
import type { RunServices } from '../http/run-services.ts'
import { answers, emptyBody, listQuery, pathId, projectParams, requireId } from '../http/shapes.ts'
import { isSettled, waitForRun } from '../http/wait-for-run.ts'

const openTo = routesOf('Runs')
const agentParams = z.strictObject({ id: pathId, agentId: pathId })
const runParams = z.strictObject({ id: pathId, runId: pathId })
const effectsQuery = z
  .strictObject({
    same_as: z
      .string()
      .min(1)
      .max(1_000)
      .optional()
      .describe(
        'The id of a call of the run. Instead: the calls with the same tool and arguments in all runs of the same work, such ' +
          'as earlier attempts at its task.',
      ),
    after_step: z.coerce
      .number()
      .int()
      .min(0)
      .max(1_000_000)
      .optional()
      .describe('Only the calls that a fork after this step may make once more.'),
  })
  .refine(({ same_as, after_step }) => same_as === undefined || after_step === undefined, {
    error: 'same_as and after_step cannot be combined.',
  })
const NOT_A_PARENT = 'must be the id of a run, or none'
const runQuery = listQuery.extend({
  id: idBeginningField.optional().describe('The first letters of an id, 8 or more.'),
  q: filledText(200)
    .optional()
    .describe(
      'A name of an agent, some words, or the beginning of an id: as in the search. Texts are looked for in the newest ' +
        'thousand runs that the other filters leave.',
    ),
  agent_id: idField.optional(),
  status: z.enum(runStatuses).optional(),
  pause_reason: z.enum(pauseReasons).optional().describe('Runs that pause for this reason.'),
  parent_run_id: z
    .union([z.literal(NO_PARENT), z.uuid({ error: NOT_A_PARENT }).toLowerCase()])
    .optional()
    .describe('Sub-runs of this run; `none`: runs that neither another run nor a flow run has started.'),
  flow_run_id: idField.optional().describe('Runs of the leaves of this flow run.'),
  task_id: idField.optional().describe('Runs that are attempts at this task.'),
  created_after: instantFilter.optional().describe('Runs that were created at this instant or later.'),
  created_before: instantFilter.optional().describe('Runs that were created before this instant.'),
})
/** 200: the run has ended or is paused; 202: the run goes on, and the answer is its present state. */
const startAnswers = { 200: runSchema, 202: runSchema, default: errorSchema }

const CANCEL_WAIT_MS = 2_000

export interface RunRouteOptions {
  pool: Pool
  once: Once
  track: TrackRequest
  places: ProjectPlaces
  services: RunServices
}

export function addRunRoutes(app: App, options: RunRouteOptions): void {
  const { pool } = options

  app.post(
    '/api/projects/:id/agents/:agentId/trigger',
    openTo('member', 'Start a run of the agent and wait for it', {
      showsRuns: true,
      params: agentParams,
      headers: startHeaders,
      body: triggerInput,
      response: startAnswers,
    }),
    (request, reply) => {
      const { id } = request.params
      const agentId = requireId(request.params.agentId, 'agent')
      const { resume_run_id: pausedId, ...given } = request.body
      const { input, timeout: timeoutMs, max_steps: maxSteps } = given
      const start = { input, timeoutMs, maxSteps, trigger: { type: 'manual' } } as const
      if (pausedId === undefined && request.headers['idempotency-key'] === undefined) {
        return startInBatch(options, request, reply, agentId, start)
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
    openTo('viewer', 'List the runs, newest first', {
      isHeavy: true,
      showsRuns: true,
      params: projectParams,
      querystring: runQuery,
      response: answers(200, pageOf(runSchema)),
    }),
    (request) => {
      const { limit, cursor, ...filter } = request.query
      requireServed(filter)
      const list = (db: Db) => listRuns(db, request.params.id, filter, { limit, cursor })
      return filter.q === undefined ? list(pool) : inSearchTime(pool, list)
    },
  )

  app.get(
    '/api/projects/:id/runs/:runId',
    openTo('viewer', 'Read a run', { showsRuns: true, params: runParams, response: answers(200, runSchema) }),
    (request) => getRun(pool, request.params.id, request.params.runId),
  )

  app.get(
    '/api/projects/:id/runs/:runId/steps',
    openTo('viewer', "List a run's model calls and tool calls, oldest first", {
      isHeavy: true,
      params: runParams,
      querystring: listQuery,
      response: answers(200, pageOf(stepSchema)),
    }),
    async (request) => {
      const run = await getRun(pool, request.params.id, request.params.runId)
      return listSteps(pool, run.id, request.query)
    },
  )

  app.get(
    '/api/projects/:id/runs/:runId/waits',
    openTo('viewer', 'List the times in which a run waited for people, tokens or the off switch, oldest first', {
      params: runParams,
      querystring: listQuery,
      response: answers(200, pageOf(runWaitSchema)),
    }),
    async (request) => {
      const run = await getRun(pool, request.params.id, request.params.runId)
      return listWaits(pool, run, request.query)
    },
  )

  app.get(
    '/api/projects/:id/runs/:runId/effects',
    openTo('viewer', 'List the calls that took effect in a run, in the runs it continues and in their sub-runs', {
      isHeavy: true,
      params: runParams,
      querystring: effectsQuery,
      response: answers(200, runEffectsSchema),
    }),
    async (request) => {
      const run = await getRun(pool, request.params.id, request.params.runId)
      return readEffects(pool, run, request.query)
    },
  )

  addRunActions(app, options)
}

function readEffects(
  db: Db,
  { id: runId, project_id: projectId }: Run,
  { same_as: callId, after_step: afterStep }: z.infer<typeof effectsQuery>,
): Promise<RunEffects> {
  if (callId !== undefined) return listSameCalls(db, runId, callId)
  return afterStep === undefined ? listEffects(db, runId) : listEffectsAfter(db, { projectId, runId, afterStep })
}

function addRunActions(app: App, options: RunRouteOptions): void {
  const { pool, services } = options
  app.post(
    '/api/projects/:id/runs/:runId/cancel',
    openTo('member', 'Cancel a run and its sub-runs; a run that has ended stays as it is', {
      showsRuns: true,
      params: runParams,
      body: emptyBody,
      response: answers(200, runSchema),
    }),
    async (request, reply) => {
      const run = await getRun(pool, request.params.id, request.params.runId)
      if (hasEnded(run)) return run
      await cancelRun({ pool, journal: services.journal }, run.project_id, run.id, (tx) =>
        recordAudit(tx, noteOf('run.cancel', request, run)),
      )
      services.hub.poke(run.id)
      // The worker stops the run within a moment, so that the answer shows the stopped run.
      const signal = options.track(reply, services.cancelWaitMs ?? CANCEL_WAIT_MS)
      return waitForRun({ db: pool, ...services }, await getRun(pool, run.project_id, run.id), signal)
    },
  )

  app.post(
    '/api/projects/:id/runs/:runId/try-now',
    openTo('member', 'Try a run at once that waits for its provider', {
      showsRuns: true,
      params: runParams,
      body: emptyBody,
      response: answers(200, runSchema),
    }),
    async (request) => {
      const run = await getRun(pool, request.params.id, request.params.runId)
      await inTransaction(pool, async (tx) => {
        if (!(await tryNow(tx, run.project_id, run.id))) throw conflict('This run does not wait for a provider.')
        await recordAudit(tx, noteOf('run.try_now', request, run))
      })
      services.onReady()
      return getRun(pool, run.project_id, run.id)
    },
  )

  app.post(
    '/api/projects/:id/runs/:runId/resume',
    openTo('member', 'Continue a run that failed, was cancelled or paused, in a new run, and wait for it', {
      showsRuns: true,
      params: runParams,
      headers: startHeaders,
      body: resumeInput.nullish(),
      response: startAnswers,
    }),
    (request, reply) =>
      startAndAnswer(options, request, reply, async (tx) => {
        const paused = await getRun(tx, request.params.id, request.params.runId)
        return resumeRun(tx, paused.project_id, paused.id, request.body ?? {})
      }),
  )

  app.post(
    '/api/projects/:id/runs/:runId/fork',
    openTo('member', "Start a new run from a point of this run's journal, and wait for it", {
      showsRuns: true,
      params: runParams,
      headers: startHeaders,
      body: forkInput,
      response: { ...startAnswers, 200: forkedRunSchema, 202: forkedRunSchema },
    }),
    async (request, reply) => {
      const source = await getRun(pool, request.params.id, request.params.runId)
      const { project_id: projectId, id } = source
      const may_repeat = await mayRepeat(pool, projectId, id, request.body.after_step)
      const run = await startAndAnswer(options, request, reply, (tx) => forkRun(tx, projectId, id, request.body))
      return { ...run, may_repeat }
    },
  )
}

/** Texts that are packed well take long to read, and nobody waits for long. */
const SEARCH_MS = 2_000

async function inSearchTime<Found>(pool: Pool, search: (db: Db) => Promise<Found>): Promise<Found> {
  const found = await inTransaction(pool, (tx) => inTime(tx, SEARCH_MS, () => search(tx)))
  if (found === null) throw unavailable('This search takes too long. Narrow it by a period, a status or an agent.')
  return found
}

/** Refuses filters that contradict each other, or that no index serves together. */
function requireServed({ id, q, parent_run_id: parent, ...filter }: RunFilter): void {
  if (id !== undefined && q !== undefined) throw invalidRequest('Give id or q, not both: q finds ids, too.')
  if (parent !== NO_PARENT) return
  for (const name of ['agent_id', 'flow_run_id'] as const) {
    if (filter[name] !== undefined) throw invalidRequest(`parent_run_id=none cannot be asked for with ${name}.`)
  }
}

/** A committed run is accepted: it goes on even if the client leaves or the server closes. */
async function startAndAnswer(
  { pool, once, track, services }: RunRouteOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  start: (tx: Db) => Promise<Run>,
): Promise<Run> {
  const { id: projectId } = request.params as { id: string } // every route of this file has this parameter
  let started: Run | null = null
  const { kept, replayed } = await once(request, async (tx) => {
    started = await start(tx)
    // An ended run is returned if other calls of it are undecided.
    const action = started.completed_at === null ? 'run.start' : 'run.decide'
    await recordAudit(tx, noteOf(action, request, started))
    return { run: started }
  })
  if (replayed) reply.header('idempotency-replayed', 'true')
  else services.onReady()
  // A repeated request that does not wait gets the first answer again; one that waits gets the run as it is now.
  const isAsync = preferenceOf(request.headers.prefer)?.waitMs === 0
  const run = started ?? (isAsync ? kept.run : await getRun(pool, projectId, kept.run.id))
  return answerWhenSettled({ pool, track, services }, request, reply, run)
}

/** Starts of many requests share one commit, unless an Idempotency-Key must be kept. */
async function startInBatch(
  { pool, track, places, services }: RunRouteOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  agentId: string,
  start: StartOptions,
): Promise<Run> {
  const { id: projectId } = request.params as { id: string } // every route of this file has this parameter
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
  const waitMs = heedPreference(request, reply)?.waitMs ?? services.waitMs ?? MOST_WAIT_MS
  if (waitMs === 0) {
    reply.code(202)
    return run
  }
  const now = await waitForRun({ db: pool, ...services }, run, track(reply, waitMs))
  reply.code(isSettled(now) ? 200 : 202)
  return now
}

function noteOf(
  action: string,
  request: FastifyRequest,
  run: Pick<Run, 'id' | 'project_id' | 'agent_id'> & { trigger: { type: string } },
) {
  const details = { agent_id: run.agent_id, trigger: run.trigger.type }
  return { action, actor: actorOf(request), projectId: run.project_id, targetType: 'run', targetId: run.id, details }
}
