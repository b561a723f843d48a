// The public API of the supervisor system: `POST /v1/agent/run`, the run as it stands, and its stream.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { readEvents } from '../../journal/read.ts'
import { invalidRequest, MusterError } from '../../kernel/errors.ts'
import { type AgentRunAnswer, type AgentRunRequest, agentRunAnswer, agentRunRequest } from '../../kernel/supervisor.ts'
import { getRun } from '../../runs/read-runs.ts'
import { readAnswer } from '../../supervisor/answer.ts'
import { followSupervisor } from '../../supervisor/follow.ts'
import { continueSupervisor, startSupervisor } from '../../supervisor/start.ts'
import { principalOf, projectOf } from '../auth.ts'
import { errorSchema } from '../errors.ts'
import { eventHeaders, startingPoint } from '../follow-events.ts'
import type { App } from '../server.ts'
import { answers } from '../shapes.ts'
import type { StreamFormat } from '../sse.ts'
import { streamFormat } from '../stream-format.ts'
import { type Begun, beginSupervised, type SupervisedRoutes, streamSupervised } from '../supervised.ts'
import { waitForRun } from '../wait-for-run.ts'

const tags = ['Supervisor']
const WAIT_MS = 600_000
const FORMATS = ['ndjson', 'sse'] as const
const runParams = z.strictObject({ run_id: z.string() })

export type AgentRunOptions = SupervisedRoutes

export function addAgentRunRoutes(app: App, options: AgentRunOptions): void {
  const { pool } = options
  const streamed = { schema: z.string() }

  app.post(
    '/v1/agent/run',
    {
      config: { access: 'member', showsRuns: true },
      schema: {
        tags,
        summary: 'Give the supervisor a task, or answer its question, and wait for the result or follow it',
        description:
          'The project is the key’s. The instance admin and signed-in people name it in x-project-id. With options.stream the answer is NDJSON, or server-sent events where Accept asks for them.',
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
      },
    },
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
    {
      config: { access: 'member', showsRuns: true },
      schema: {
        tags,
        summary: 'Read a run of the supervisor',
        params: runParams,
        response: answers(200, agentRunAnswer),
      },
    },
    (request) => readAnswer(pool, projectOf(request), request.params.run_id.toLowerCase()),
  )

  app.get(
    '/v1/agent/runs/:run_id/events',
    {
      config: { access: 'member' },
      schema: {
        tags,
        summary: 'Follow a run of the supervisor until its end',
        params: runParams,
        headers: eventHeaders,
        response: {
          200: {
            description: 'NDJSON, or server-sent events where Accept asks for them. The last event is final.',
            content: { 'application/x-ndjson': streamed, 'text/event-stream': streamed },
          },
          default: errorSchema,
        },
      },
    },
    async (request, reply) => {
      const format = streamFormat(request, FORMATS)
      const { metadata, result } = await readAnswer(pool, projectOf(request), request.params.run_id.toLowerCase())
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

/** Starts a run, or continues one: then the stream begins where the run stood. */
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
    if (!input) throw invalidRequest('input: is required')
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
  const told = await readAnswer(pool, projectId, runId)
  const { status, error } = told.result
  if (error?.code === 'PROMPT_MISSING')
    throw new MusterError('PROMPT_MISSING', error.message, { status: 422, details: error.details ?? {} })
  if (error?.code === 'UNAVAILABLE')
    throw new MusterError('UNAVAILABLE', `${error.message} With options.run_id the run goes on.`, {
      details: error.details ?? {},
      retryAfterS: 5,
    })
  if (error?.code === 'INTERNAL_ERROR')
    throw new MusterError('INTERNAL_ERROR', error.message, { details: error.details ?? {} })
  reply.code(status === 'RUNNING' ? 202 : 200)
  return told
}

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
