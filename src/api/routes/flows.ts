import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { argumentWarnings } from '../../flows/definition/argument-warnings.ts'
import {
  checkFlow,
  createFlow,
  deleteFlow,
  flowInput,
  flowPatch,
  flowRoot,
  flowSchema,
  getFlow,
  listFlows,
  updateFlow,
} from '../../flows/definition/flows.ts'
import { pageOf } from '../../kernel/fields.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import type { Create } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import type { FlowServices } from '../http/run-services.ts'
import { answers, listQuery, nothing, pathId, projectParams, requireId } from '../http/shapes.ts'

const openTo = routesOf('Flows')
const flowParams = z.strictObject({ id: pathId, flowId: pathId })
const problemSchema = z.strictObject({ path: z.string(), message: z.string() })
export const verdictSchema = z.strictObject({
  valid: z.boolean(),
  errors: z.array(problemSchema),
  /** Steps of a valid flow that can only fail, as a question to the model that is empty. Left out if there are none. */
  warnings: z.array(problemSchema).optional(),
})

export function addFlowRoutes(
  app: App,
  { pool, create, flows }: { pool: Pool; create: Create; flows: FlowServices },
): void {
  app.post(
    '/api/projects/:id/flows',
    openTo('admin', 'Create a flow', {
      params: projectParams,
      body: flowInput,
      response: answers(201, flowSchema),
    }),
    (request, reply) =>
      create(request, reply, (db) =>
        createFlow(db, request.params.id, request.body, { ...flows, actor: actorOf(request) }),
      ),
  )

  app.get(
    '/api/projects/:id/flows',
    openTo('viewer', 'List the flows', {
      isHeavy: true,
      params: projectParams,
      querystring: listQuery,
      response: answers(200, pageOf(flowSchema)),
    }),
    (request) => listFlows(pool, request.params.id, request.query),
  )

  app.post(
    '/api/projects/:id/flows/validate',
    openTo('viewer', 'Check whether a flow can run, and list all its problems; nothing is stored', {
      params: projectParams,
      body: flowRoot,
      response: answers(200, verdictSchema),
    }),
    async (request) => {
      const checked = await checkFlow(pool, request.params.id, request.body.root, flows)
      if (!checked.isValid) return { valid: false, errors: checked.problems }
      const warnings = argumentWarnings(checked.root, flows.patterns)
      return { valid: true, errors: [], ...(warnings.length > 0 && { warnings }) }
    },
  )

  app.get(
    '/api/projects/:id/flows/:flowId',
    openTo('viewer', 'Read a flow', { params: flowParams, response: answers(200, flowSchema) }),
    (request) => getFlow(pool, request.params.id, requireId(request.params.flowId, 'flow')),
  )

  app.patch(
    '/api/projects/:id/flows/:flowId',
    openTo('admin', 'Change a flow; runs under way keep the tree they were started with', {
      params: flowParams,
      body: flowPatch,
      response: answers(200, flowSchema),
    }),
    (request) =>
      updateFlow(pool, request.params.id, requireId(request.params.flowId, 'flow'), request.body, {
        ...flows,
        actor: actorOf(request),
      }),
  )

  app.delete(
    '/api/projects/:id/flows/:flowId',
    openTo('admin', 'Delete a flow; its runs stay', { params: flowParams, response: answers(204, nothing) }),
    async (request, reply) => {
      await deleteFlow(pool, request.params.id, requireId(request.params.flowId, 'flow'), actorOf(request))
      return reply.code(204).send(null)
    },
  )
}
