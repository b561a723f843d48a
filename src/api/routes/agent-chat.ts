// Chats with the supervisor for `useChat` of the AI SDK: the answer to a message is a UI message stream. A reader that
// leaves ends nothing; it may read the answer again from its beginning.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { CHAT_STREAM_HEADER, type ChatRequest, chatRequest } from '../../kernel/chat.ts'
import { answerUnderWay, type ChatAnswer, streamAnswer, takeChatTurn } from '../../supervisor/chat.ts'
import type { App } from '../http/app.ts'
import { principalOf, projectOf } from '../http/auth.ts'
import { errorSchema } from '../http/errors.ts'
import { routesOf } from '../http/routes-of.ts'
import { nothing } from '../http/shapes.ts'
import { streamFormat } from '../http/stream-format.ts'
import { beginSupervised, type SupervisedRoutes, streamSupervised } from './supervised.ts'

const openTo = routesOf('Supervisor')
const chunks = {
  description:
    'The UI message stream of the AI SDK, version 1: text-delta has the answer, or the question of an escalation; data-status, which is transient, tells what the supervisor does; the metadata of the message have run_id and status; the last line is [DONE].',
  content: { 'text/event-stream': { schema: z.string() } },
}

export type AgentChatOptions = SupervisedRoutes

export function addAgentChatRoutes(app: App, options: AgentChatOptions): void {
  const { pool, streams } = options

  app.post(
    '/v1/agent/chat',
    openTo('member', 'Say something in a chat, and follow the answer', {
      description:
        'For useChat of the AI SDK. The newest message of the user is a task for the supervisor, or the answer to its question if the chat’s run was escalated. If the run’s model was unavailable, the message continues it, and the same message adds nothing. Fields that are not listed are ignored.',
      body: chatRequest,
      response: { 200: chunks, default: errorSchema },
    }),
    async (request, reply) => {
      streamFormat(request, ['ui'])
      streams.open(principalOf(request), reply)
      return stream(options, { request, reply, answer: await begin(options, request, reply) })
    },
  )

  app.get(
    '/v1/agent/chat/:chat_id/stream',
    openTo('member', 'Pick up the answer that is under way in a chat, from its beginning', {
      params: z.strictObject({ chat_id: z.string() }),
      response: { 200: chunks, 204: nothing, default: errorSchema },
    }),
    async (request, reply) => {
      streamFormat(request, ['ui'])
      const answer = await answerUnderWay(pool, projectOf(request), request.params.chat_id)
      if (answer === null) return reply.code(204).send(null)
      return stream(options, { request, reply, answer })
    },
  )
}

const begin = (options: AgentChatOptions, request: FastifyRequest<{ Body: ChatRequest }>, reply: FastifyReply) =>
  beginSupervised(options, { request, reply }, (tx, parts) =>
    takeChatTurn(tx, parts, { projectId: projectOf(request), request: request.body, ofProcess: options.systemVariant }),
  )

function stream(
  options: AgentChatOptions,
  { request, reply, answer }: { request: FastifyRequest; reply: FastifyReply; answer: ChatAnswer },
): Promise<FastifyReply> {
  const projectId = projectOf(request)
  reply.header(CHAT_STREAM_HEADER.name, CHAT_STREAM_HEADER.value)
  return streamSupervised(
    options,
    { request, reply, run: { id: answer.runId, project_id: projectId }, format: 'ui' },
    async function* (source, signal) {
      for await (const chunk of streamAnswer(source, { projectId, ...answer }, signal)) {
        yield { event: chunk.type, data: chunk, isLast: chunk.type === 'finish' }
      }
    },
  )
}
