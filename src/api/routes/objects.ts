import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { conflict, invalidRequest, notFound } from '../../kernel/errors.ts'
import { pageOf } from '../../kernel/fields.ts'
import {
  type GraphObject,
  objectInput,
  objectPatch,
  objectSchema,
  objectTypeField,
  objectVersionSchema,
} from '../../kernel/object.ts'
import { byPerson } from '../../objects/author.ts'
import { listVersions } from '../../objects/history.ts'
import { getObject, listObjects } from '../../objects/objects.ts'
import { type ObjectWriter, TOO_LARGE_PROBLEM, type WriteOutcome } from '../../objects/write-objects.ts'
import { actorOf } from '../auth.ts'
import type { Create } from '../idempotency.ts'
import type { ProjectPlaces } from '../project-places.ts'
import type { App } from '../server.ts'
import { answers, listQuery, nothing, pathId, projectParams, requireId } from '../shapes.ts'

const tags = ['Objects']
const objectParams = z.strictObject({ id: pathId, objectId: pathId })
const objectQuery = listQuery.extend({
  type: objectTypeField.optional(),
  q: z.string().min(1).max(500).optional().describe('Words that key and properties hold; beginnings of words will do.'),
})

export interface ObjectRouteOptions {
  pool: Pool
  create: Create
  places: ProjectPlaces
  writer: ObjectWriter
  onReady: () => void
}

export function addObjectRoutes(app: App, { pool, create, places, writer, onReady }: ObjectRouteOptions): void {
  /** Called after the commit: the runs that the change started are in the database. */
  const said = ({ object, started }: { object: GraphObject; started: number }): GraphObject => {
    if (started > 0) onReady()
    return object
  }

  app.post(
    '/api/projects/:id/objects',
    {
      config: { access: 'member' },
      schema: {
        tags,
        summary: 'Create an object',
        params: projectParams,
        body: objectInput,
        response: answers(201, objectSchema),
      },
    },
    async (request, reply) => {
      const { type, key = null, properties } = request.body
      let started = 0
      const object = await create(request, reply, async (db) => {
        if (db === pool) places.share(request)
        const author = byPerson(actorOf(request))
        const change = { op: 'create', type, key, properties } as const
        const write = { projectId: request.params.id, change, author }
        const written = writtenOf(await (db === pool ? writer.write(write) : writer.writeIn(db, write)))
        started = written.started
        return written.object
      })
      return said({ object, started })
    },
  )

  app.get(
    '/api/projects/:id/objects',
    {
      config: { access: 'viewer', isHeavy: true },
      schema: {
        tags,
        summary: 'List and search the objects',
        params: projectParams,
        querystring: objectQuery,
        response: answers(200, pageOf(objectSchema)),
      },
    },
    (request) => {
      const { limit, cursor, ...filter } = request.query
      return listObjects(pool, request.params.id, filter, { limit, cursor })
    },
  )

  app.get(
    '/api/projects/:id/objects/:objectId',
    {
      config: { access: 'viewer' },
      schema: { tags, summary: 'Read an object', params: objectParams, response: answers(200, objectSchema) },
    },
    (request) => getObject(pool, request.params.id, requireId(request.params.objectId, 'object')),
  )

  app.patch(
    '/api/projects/:id/objects/:objectId',
    {
      config: { access: 'member' },
      schema: {
        tags,
        summary: 'Change properties of an object; those that are not named stay',
        params: objectParams,
        body: objectPatch,
        response: answers(200, objectSchema),
      },
    },
    async (request) => {
      const { properties, expected_version: expectedVersion = null } = request.body
      const id = requireId(request.params.objectId, 'object')
      const change = { op: 'update', id, properties, expectedVersion } as const
      const author = byPerson(actorOf(request))
      return said(writtenOf(await writer.write({ projectId: request.params.id, change, author })))
    },
  )

  app.delete(
    '/api/projects/:id/objects/:objectId',
    {
      config: { access: 'member' },
      schema: {
        tags,
        summary: 'Delete an object; its history stays',
        params: objectParams,
        response: answers(204, nothing),
      },
    },
    async (request, reply) => {
      const id = requireId(request.params.objectId, 'object')
      const change = { op: 'delete', id, expectedVersion: null } as const
      const author = byPerson(actorOf(request))
      said(writtenOf(await writer.write({ projectId: request.params.id, change, author })))
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/api/projects/:id/objects/:objectId/history',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'Every version of an object and who made it',
        params: objectParams,
        querystring: listQuery,
        response: answers(200, pageOf(objectVersionSchema)),
      },
    },
    async (request) => {
      const { id } = await getObject(pool, request.params.id, requireId(request.params.objectId, 'object'))
      return listVersions(pool, id, request.query)
    },
  )
}

function writtenOf(outcome: WriteOutcome): { object: GraphObject; started: number } {
  switch (outcome.kind) {
    case 'written':
      return outcome
    case 'unchanged':
      return { object: outcome.object, started: 0 }
    case 'missing':
      throw notFound('object')
    case 'moved':
      throw conflict(`The object is at version ${outcome.version} by now. Read it again before you change it.`, {
        version: outcome.version,
      })
    case 'too_large':
      throw invalidRequest(TOO_LARGE_PROBLEM)
    case 'taken':
      throw conflict('There is a live object of this type and key already.')
  }
}
