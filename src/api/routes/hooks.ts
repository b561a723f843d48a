import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { pageOf } from '../../kernel/fields.ts'
import { hookInput, hookSchema, newHookSchema } from '../../kernel/hook.ts'
import { createHook, deleteHook, type HookOwner, type HookParts, listHooks, rotateHook } from '../../triggers/hooks.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import type { Create, Once } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, emptyBody, listQuery, nothing, pathId, requireId } from '../http/shapes.ts'

const openTo = routesOf('Hooks')
const agentParams = z.strictObject({ id: pathId, agentId: pathId })
const hookParams = z.strictObject({ id: pathId, agentId: pathId, hookId: pathId })
const rotateHeaders = z.looseObject({
  'idempotency-key': z.string().optional().describe('The same key gives the same secret for 24 h.'),
})

export interface HookRouteOptions extends HookParts {
  pool: Pool
  create: Create
  once: Once
}

export function addHookRoutes(app: App, { pool, cipher, publicUrl, create, once }: HookRouteOptions): void {
  app.post(
    '/api/projects/:id/agents/:agentId/hooks',
    openTo('admin', 'Create a hook; its secret is shown only in this answer', {
      params: agentParams,
      body: hookInput,
      response: answers(201, newHookSchema),
    }),
    (request, reply) => {
      const owner = ownerIn(request.params, 'agent')
      return create(request, reply, (db) =>
        createHook(db, { cipher, publicUrl }, owner, request.body, actorOf(request)),
      )
    },
  )

  app.get(
    '/api/projects/:id/agents/:agentId/hooks',
    openTo('viewer', "List an agent's hooks", {
      params: agentParams,
      querystring: listQuery,
      response: answers(200, pageOf(hookSchema)),
    }),
    (request) => listHooks(pool, publicUrl, ownerIn(request.params, 'agent'), request.query),
  )

  app.post(
    '/api/projects/:id/agents/:agentId/hooks/:hookId/rotate',
    openTo('admin', 'Give a hook a new secret; the old secret holds for 24 hours more', {
      params: hookParams,
      headers: rotateHeaders,
      body: emptyBody,
      response: answers(200, newHookSchema),
    }),
    async (request, reply) => {
      const { owner, hookId } = hookIn(request)
      // A client repeats a rotation whose answer was lost. The repeated rotation must not end the secret in use.
      const { kept, replayed } = await once(request, (tx) =>
        rotateHook(tx, { cipher, publicUrl }, owner, hookId, actorOf(request)),
      )
      if (replayed) reply.header('idempotency-replayed', 'true')
      return kept
    },
  )

  app.delete(
    '/api/projects/:id/agents/:agentId/hooks/:hookId',
    openTo('admin', 'Delete a hook; deliveries to its address are refused from then on', {
      params: hookParams,
      response: answers(204, nothing),
    }),
    async (request, reply) => {
      const { owner, hookId } = hookIn(request)
      await deleteHook(pool, owner, hookId, actorOf(request))
      return reply.code(204).send(null)
    },
  )
}

const ownerIn = ({ id, agentId }: { id: string; agentId: string }, missing: string): HookOwner => ({
  projectId: id,
  agentId: requireId(agentId, missing),
})

function hookIn(request: FastifyRequest): { owner: HookOwner; hookId: string } {
  const params = request.params as z.infer<typeof hookParams> // both routes that call this have them
  return { owner: ownerIn(params, 'hook'), hookId: requireId(params.hookId, 'hook') }
}
