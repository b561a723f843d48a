import { z } from 'zod'
import { createAgent, deleteAgent, getAgent, listAgents, updateAgent } from '../../agents/agents.ts'
import type { Pool } from '../../db/pool.ts'
import { agentInput, agentPatch, agentSchema } from '../../kernel/agent.ts'
import { pageOf } from '../../kernel/fields.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import type { Create } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import type { RunServices } from '../http/run-services.ts'
import { answers, listQuery, nothing, pathId, projectParams, requireId } from '../http/shapes.ts'

const openTo = routesOf('Agents')
const agentParams = z.strictObject({ id: pathId, agentId: pathId })

export function addAgentRoutes(
  app: App,
  {
    pool,
    createTogether,
    rules,
    org,
  }: { pool: Pool; createTogether: Create; rules: RunServices['agentRules']; org: RunServices['org'] },
): void {
  app.post(
    '/api/projects/:id/agents',
    openTo('admin', 'Create an agent', {
      params: projectParams,
      body: agentInput,
      response: answers(201, agentSchema),
    }),
    async (request, reply) => {
      const answer = await createTogether(request, reply, (tx) =>
        createAgent(tx, request.params.id, request.body, { actor: actorOf(request), ...rules }),
      )
      org.sweep()
      return answer
    },
  )

  app.get(
    '/api/projects/:id/agents',
    openTo('viewer', 'List the agents', {
      params: projectParams,
      querystring: listQuery.extend({
        tokens: z
          .enum(['short', 'used_up'])
          .optional()
          .describe('Only agents that have used 90 % of their tokens and have some left, or that have used up all.'),
      }),
      response: answers(200, pageOf(agentSchema)),
    }),
    (request) => listAgents(pool, request.params.id, request.query),
  )

  app.get(
    '/api/projects/:id/agents/:agentId',
    openTo('viewer', 'Read an agent', { params: agentParams, response: answers(200, agentSchema) }),
    (request) => getAgent(pool, request.params.id, requireId(request.params.agentId, 'agent')),
  )

  app.patch(
    '/api/projects/:id/agents/:agentId',
    openTo('admin', 'Change an agent; nested objects are replaced as a whole', {
      params: agentParams,
      body: agentPatch,
      response: answers(200, agentSchema),
    }),
    async (request) => {
      const agentId = requireId(request.params.agentId, 'agent')
      const by = { actor: actorOf(request), ...rules }
      await updateAgent(pool, request.params.id, agentId, request.body, by)
      org.poke(request.params.id)
      return getAgent(pool, request.params.id, agentId)
    },
  )

  app.delete(
    '/api/projects/:id/agents/:agentId',
    openTo('admin', 'Delete an agent; its runs stay', { params: agentParams, response: answers(204, nothing) }),
    async (request, reply) => {
      const agentId = requireId(request.params.agentId, 'agent')
      await deleteAgent(pool, request.params.id, agentId, { actor: actorOf(request), onChanged: rules.onChanged })
      org.poke(request.params.id)
      return reply.code(204).send(null)
    },
  )
}
