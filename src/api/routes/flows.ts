import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import {
  checkFlow,
  createFlow,
  deleteFlow,
  flowInput,
  flowPatch,
  flowSchema,
  getFlow,
  listFlows,
  rootField,
  updateFlow,
} from '../../flows/flows.ts'
import { pageOf } from '../../kernel/fields.ts'
import { actorOf } from '../auth.ts'
import type { Create } from '../idempotency.ts'
import type { FlowServices } from '../run-services.ts'
import type { App } from '../server.ts'
import { answers, listQuery, nothing, pathId, projectParams, requireId } from '../shapes.ts'

const tags = ['Flows']
const flowParams = z.strictObject({ id: pathId, flowId: pathId })
const verdictSchema = z.strictObject({
  valid: z.boolean(),
  errors: z.array(z.strictObject({ path: z.string(), message: z.string() })),
})

export function addFlowRoutes(
  app: App,
  { pool, create, flows }: { pool: Pool; create: Create; flows: FlowServices },
): void {
  const { functions } = flows

  app.post(
    '/api/projects/:id/flows',
    {
      config: { access: 'admin' },
      schema: {
        tags,
        summary: 'Create a flow',
        params: projectParams,
        body: flowInput,
        response: answers(201, flowSchema),
      },
    },
    (request, reply) =>
      create(request, reply, (db) =>
        createFlow(db, request.params.id, request.body, { actor: actorOf(request), functions }),
      ),
  )

  app.get(
    '/api/projects/:id/flows',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'List the flows',
        params: projectParams,
        querystring: listQuery,
        response: answers(200, pageOf(flowSchema)),
      },
    },
    (request) => listFlows(pool, request.params.id, request.query),
  )

  app.post(
    '/api/projects/:id/flows/validate',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'Say whether a flow can run, and everything that is wrong with it; nothing is stored',
        params: projectParams,
        body: z.strictObject({ root: rootField }),
        response: answers(200, verdictSchema),
      },
    },
    async (request) => {
      const checked = await checkFlow(pool, request.params.id, request.body.root, functions)
      return { valid: checked.isValid, errors: checked.isValid ? [] : checked.problems }
    },
  )

  app.get(
    '/api/projects/:id/flows/:flowId',
    {
      config: { access: 'viewer' },
      schema: { tags, summary: 'Read a flow', params: flowParams, response: answers(200, flowSchema) },
    },
    (request) => getFlow(pool, request.params.id, requireId(request.params.flowId, 'flow')),
  )

  app.patch(
    '/api/projects/:id/flows/:flowId',
    {
      config: { access: 'admin' },
      schema: {
        tags,
        summary: 'Change a flow; runs under way keep the tree they were started with',
        params: flowParams,
        body: flowPatch,
        response: answers(200, flowSchema),
      },
    },
    (request) =>
      updateFlow(pool, request.params.id, requireId(request.params.flowId, 'flow'), request.body, {
        actor: actorOf(request),
        functions,
      }),
  )

  app.delete(
    '/api/projects/:id/flows/:flowId',
    {
      config: { access: 'admin' },
      schema: {
        tags,
        summary: 'Delete a flow; its runs stay',
        params: flowParams,
        response: answers(204, nothing),
      },
    },
    async (request, reply) => {
      await deleteFlow(pool, request.params.id, requireId(request.params.flowId, 'flow'), actorOf(request))
      return reply.code(204).send(null)
    },
  )
}
