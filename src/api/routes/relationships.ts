import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { conflict, notFound } from '../../kernel/errors.ts'
import { pageOf } from '../../kernel/fields.ts'
import { relationshipInput, relationshipSchema } from '../../kernel/object.ts'
import { byPerson } from '../../objects/author.ts'
import { getObject } from '../../objects/objects.ts'
import { deleteRelationship, listRelationships, relate } from '../../objects/relationships.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import type { Create } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, listQuery, nothing, pathId, projectParams, requireId } from '../http/shapes.ts'

const openTo = routesOf('Objects')

export function addRelationshipRoutes(
  app: App,
  { pool, createTogether }: { pool: Pool; createTogether: Create },
): void {
  app.post(
    '/api/projects/:id/relationships',
    openTo('member', 'Relate two objects', {
      params: projectParams,
      body: relationshipInput,
      response: answers(201, relationshipSchema),
    }),
    (request, reply) =>
      createTogether(request, reply, async (tx) => {
        const { type, from_id: fromId, to_id: toId, properties = {} } = request.body
        const change = { op: 'relate', type, fromId, toId, properties } as const
        const author = byPerson(actorOf(request))
        const outcome = await relate(tx, { projectId: request.params.id, change, author })
        if (outcome.kind === 'missing') throw notFound('object')
        if (outcome.kind === 'taken') throw conflict('These objects are related so already.')
        return outcome.relationship
      }),
  )

  app.get(
    '/api/projects/:id/objects/:objectId/relationships',
    openTo('viewer', 'List the relationships from and to an object', {
      isHeavy: true,
      params: z.strictObject({ id: pathId, objectId: pathId }),
      querystring: listQuery,
      response: answers(200, pageOf(relationshipSchema)),
    }),
    async (request) => {
      const { id } = await getObject(pool, request.params.id, requireId(request.params.objectId, 'object'))
      return listRelationships(pool, id, request.query)
    },
  )

  app.delete(
    '/api/projects/:id/relationships/:relId',
    openTo('member', 'Delete a relationship', {
      params: z.strictObject({ id: pathId, relId: pathId }),
      response: answers(204, nothing),
    }),
    async (request, reply) => {
      const relId = requireId(request.params.relId, 'relationship')
      await deleteRelationship(pool, request.params.id, relId, actorOf(request))
      return reply.code(204).send(null)
    },
  )
}
