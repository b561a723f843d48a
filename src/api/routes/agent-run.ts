// The public API of the supervisor system: `POST /v1/agent/run`, the run as it stands, and its stream.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { readEvents } from '../../journal/read.ts'
import { invalidRequest, MusterError } from '../../kernel/errors.ts'
import { type AgentRunAnswer, type AgentRunRequest, agentRunAnswer, agentRunRequest } from '../../kernel/supervisor.ts'
import { getRun } from '../../runs/read-runs.ts'
import { readRunAnswer } from '../../supervisor/answer.ts'
import { followSupervisor } from '../../supervisor/follow.ts'
import { continueSupervisor, startSupervisor } from '../../supervisor/start.ts'
import type { App } from '../http/app.ts'
import { principalOf, projectOf } from '../http/auth.ts'
import { errorSchema } from '../http/errors.ts'
import { eventHeaders, startingPoint } from '../http/follow-events.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers } from '../http/shapes.ts'
import type { StreamFormat } from '../http/sse.ts'
import { streamFormat } from '../http/stream-format.ts'
import { waitForRun } from '../http/wait-for-run.ts'
import { type Begun, beginSupervised, type SupervisedRoutes, streamSupervised } from './supervised.ts'

const openTo = routesOf('Supervisor')
const WAIT_MS = 600_000
const FORMATS = ['ndjson', 'sse'] as const
const runParams = z.strictObject({ run_id: z.string() })

export type AgentRunOptions = SupervisedRoutes

export function addAgentRunRoutes(app: App, options: AgentRunOptions): void {
  const { pool } = options
  const streamed = { schema: z.string() }

  app.post(
    '/v1/agent/run',
    openTo('member', 'Give the supervisor a task, or answer its question, and wait for the result or follow it', {
      showsRuns: true,
      description:
        'The project is the key’s. The instance admin and signed-in people name it in x-project-id. With options.stream the answer is NDJSON, or server-sent events if Accept asks for them.',
      body: agentRunRequest,
      response: {
        200: {
          description: 'The result, or a stream that ends with the event final.',
          content: {
            'application/json': { schema: agentRunAnswer },
            'application/x-ndjson': streamed,
            'text/event-stream': streamed,
          },
        },
        202: agentRunAnswer,
        default: errorSchema,
      },
    }),
    async (request, reply) => {
      const isStreamed = request.body.options?.stream === true
      const format = isStreamed ? streamFormat(request, FORMATS) : null
      if (format) options.streams.open(principalOf(request), reply)
      const begun = await begin(options, request, reply)
      if (format) return stream(options, { request, reply, ...begun, format })
      reply.header('x-run-id', begun.runId)
      return answer(options, { request, reply, ...begun })
    },
  )

  app.get(
    '/v1/agent/runs/:run_id',
    openTo('member', 'Read a run of the supervisor', {
      showsRuns: true,
      params: runParams,
      response: answers(200, agentRunAnswer),
    }),
    (request) => readRunAnswer(pool, projectOf(request), request.params.run_id.toLowerCase()),
  )

  app.get(
    '/v1/agent/runs/:run_id/events',
    openTo('member', 'Follow a run of the supervisor until its end', {
      params: runParams,
      headers: eventHeaders,
      response: {
        200: {
          description: 'NDJSON, or server-sent events if Accept asks for them. The last event is final.',
          content: { 'application/x-ndjson': streamed, 'text/event-stream': streamed },
        },
        default: errorSchema,
      },
    }),
    async (request, reply) => {
      const format = streamFormat(request, FORMATS)
      const { metadata, result } = await readRunAnswer(pool, projectOf(request), request.params.run_id.toLowerCase())
      const { run_id: runId } = metadata
      const after = await startingPoint(request.headers['last-event-id'], {
        what: 'run',
        hasEnded: result.status !== 'RUNNING',
        hasEvent: async (seq) => (await readEvents(pool, runId, { after: seq - 1, upTo: seq, limit: 1 })).length > 0,
      })
      return stream(options, { request, reply, runId, format, after })
    },
  )
}

/** Starts a run, or continues one. The stream of a continued run begins at the continuation. */
function begin(
  options: AgentRunOptions,
  request: FastifyRequest<{ Body: AgentRunRequest }>,
  reply: FastifyReply,
): Promise<Begun> {
  const projectId = projectOf(request)
  const { input, options: asked } = request.body
  return beginSupervised(options, { request, reply }, async (tx, parts) => {
    const continued = asked?.run_id ?? null
    const variant = asked?.system_variant ?? null
    if (continued !== null)
      return continueSupervisor(tx, parts, { projectId, runId: continued, said: input?.task ?? null, variant })
    if (!input) throw invalidRequest('body.input is missing.')
    const run = await startSupervisor(tx, projectId, {
      task: input.task,
      metadata: input.context?.metadata ?? {},
      contextId: input.context?.context_id ?? null,
      requested: variant,
      ofProcess: options.systemVariant,
    })
    return { run, after: 0 }
  })
}

async function answer(
  { pool, track, services }: AgentRunOptions,
  { request, reply, runId, after }: { request: FastifyRequest; reply: FastifyReply } & Begun,
): Promise<AgentRunAnswer> {
  const projectId = projectOf(request)
  const signal = track(reply, services.waitMs ?? WAIT_MS)
  const run = await getRun(pool, projectId, runId)
  await waitForRun({ db: pool, ...services }, run, signal, after > 0 ? after : null)
  const told = await readRunAnswer(pool, projectId, runId)
  const { status, error } = told.result
  if (error?.code === 'PROMPT_MISSING')
    throw new MusterError('PROMPT_MISSING', error.message, { status: 422, details: error.details ?? {} })
  if (error?.code === 'UNAVAILABLE')
    throw new MusterError('UNAVAILABLE', `${sentence(error.message)} Send options.run_id to continue the run.`, {
      details: error.details ?? {},
      retryAfterS: 5,
    })
  if (error?.code === 'INTERNAL_ERROR')
    throw new MusterError('INTERNAL_ERROR', error.message, { details: error.details ?? {} })
  reply.code(status === 'RUNNING' ? 202 : 200)
  return told
}

const sentence = (message: string): string => (/[.!?…]$/.test(message) ? message : `${message}.`)

function stream(
  options: AgentRunOptions,
  {
    request,
    reply,
    runId,
    after,
    format,
  }: { request: FastifyRequest; reply: FastifyReply; format: StreamFormat } & Begun,
): Promise<FastifyReply> {
  const projectId = projectOf(request)
  return streamSupervised(
    options,
    { request, reply, run: { id: runId, project_id: projectId }, format },
    async function* (source, signal) {
      for await (const { event, seq } of followSupervisor(source, { projectId, runId }, { after, signal })) {
        const { event_type: type } = event
        yield { ...(seq === undefined ? {} : { id: seq }), event: type, data: event, isLast: type === 'final' }
      }
    },
  )
}
