import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { conflict, invalidRequest, notFound } from '../../kernel/errors.ts'
import { pageOf } from '../../kernel/fields.ts'
import {
  type GraphObject,
  objectByKey,
  objectInput,
  objectKeyField,
  objectPatch,
  objectSchema,
  objectTypeField,
  objectVersionSchema,
} from '../../kernel/object.ts'
import { byPerson } from '../../objects/author.ts'
import { listObjectVersions } from '../../objects/history.ts'
import { getObject, listObjects } from '../../objects/objects.ts'
import { type ObjectWriter, TOO_LARGE_PROBLEM, type WriteOutcome } from '../../objects/write-objects.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import { errorSchema } from '../http/errors.ts'
import type { Create } from '../http/idempotency.ts'
import type { ProjectPlaces } from '../http/project-places.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, listQuery, nothing, pathId, projectParams, requireId } from '../http/shapes.ts'

const openTo = routesOf('Objects')
const objectParams = z.strictObject({ id: pathId, objectId: pathId })
const objectQuery = listQuery.extend({
  type: objectTypeField.optional(),
  key: objectKeyField.optional(),
  q: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe('Words in the key and the properties; the beginning of a word is enough.'),
})

export interface ObjectRouteOptions {
  pool: Pool
  create: Create
  places: ProjectPlaces
  writer: ObjectWriter
  onReady: () => void
}

export function addObjectRoutes(app: App, options: ObjectRouteOptions): void {
  const { pool, create, places, writer } = options
  app.post(
    '/api/projects/:id/objects',
    openTo('member', 'Create an object', {
      params: projectParams,
      body: objectInput,
      response: answers(201, objectSchema),
    }),
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
      return said({ object, started }, options)
    },
  )

  app.get(
    '/api/projects/:id/objects',
    openTo('viewer', 'List and search the objects', {
      isHeavy: true,
      params: projectParams,
      querystring: objectQuery,
      response: answers(200, pageOf(objectSchema)),
    }),
    (request) => {
      const { limit, cursor, ...filter } = request.query
      return listObjects(pool, request.params.id, filter, { limit, cursor })
    },
  )

  app.put(
    '/api/projects/:id/objects/by-key',
    openTo(
      'member',
      'Create the object with this type and key, or change properties of it; those that are not named stay',
      {
        params: projectParams,
        body: objectByKey,
        response: { 200: objectSchema, 201: objectSchema, default: errorSchema },
      },
    ),
    async (request, reply) => {
      const author = byPerson(actorOf(request))
      const outcome = await writer.put({ projectId: request.params.id, author, ...request.body })
      // Only a creation writes a first version.
      reply.code(outcome.kind === 'written' && outcome.object.version === 1 ? 201 : 200)
      return said(writtenOf(outcome), options)
    },
  )

  addOneObjectRoutes(app, options)
}

/** Called after the commit, when the runs that the change started are in the database. */
function said(
  { object, started }: { object: GraphObject; started: number },
  { onReady }: Pick<ObjectRouteOptions, 'onReady'>,
): GraphObject {
  if (started > 0) onReady()
  return object
}

function addOneObjectRoutes(app: App, options: ObjectRouteOptions): void {
  const { pool, writer } = options
  app.get(
    '/api/projects/:id/objects/:objectId',
    openTo('viewer', 'Read an object', { params: objectParams, response: answers(200, objectSchema) }),
    (request) => getObject(pool, request.params.id, requireId(request.params.objectId, 'object')),
  )

  app.patch(
    '/api/projects/:id/objects/:objectId',
    openTo('member', 'Change properties of an object; properties that are not named stay', {
      params: objectParams,
      body: objectPatch,
      response: answers(200, objectSchema),
    }),
    async (request) => {
      const { properties, expected_version: expectedVersion = null } = request.body
      const id = requireId(request.params.objectId, 'object')
      const change = { op: 'update', id, properties, expectedVersion } as const
      const author = byPerson(actorOf(request))
      return said(writtenOf(await writer.write({ projectId: request.params.id, change, author })), options)
    },
  )

  app.delete(
    '/api/projects/:id/objects/:objectId',
    openTo('member', 'Delete an object; its history stays', {
      params: objectParams,
      response: answers(204, nothing),
    }),
    async (request, reply) => {
      const id = requireId(request.params.objectId, 'object')
      const change = { op: 'delete', id, expectedVersion: null } as const
      const author = byPerson(actorOf(request))
      said(writtenOf(await writer.write({ projectId: request.params.id, change, author })), options)
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/api/projects/:id/objects/:objectId/history',
    openTo('viewer', 'List every version of an object and its author', {
      isHeavy: true,
      params: objectParams,
      querystring: listQuery,
      response: answers(200, pageOf(objectVersionSchema)),
    }),
    async (request) => {
      const { id } = await getObject(pool, request.params.id, requireId(request.params.objectId, 'object'))
      return listObjectVersions(pool, id, request.query)
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
      throw conflict(
        'There is a live object of this type and key already. Change that one, or send PUT to /objects/by-key.',
        { id: outcome.id },
      )
  }
}
