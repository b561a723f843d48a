import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { createKey, listKeys, revokeKey } from '../../identity/api-keys.ts'
import type { KeyCache } from '../../identity/key-cache.ts'
import { keyInput, keySchema, newKeySchema } from '../../kernel/access.ts'
import { pageOf } from '../../kernel/fields.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import type { Create } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, listQuery, nothing, pathId, projectParams, requireId } from '../http/shapes.ts'

const openTo = routesOf('Keys')

export function addKeyRoutes(app: App, { pool, keys, create }: { pool: Pool; keys: KeyCache; create: Create }): void {
  app.post(
    '/api/projects/:id/keys',
    openTo('admin', 'Create an API key; it is shown only in this answer', {
      params: projectParams,
      body: keyInput,
      response: answers(201, newKeySchema),
    }),
    (request, reply) =>
      create(request, reply, (db) => createKey(db, request.params.id, request.body, actorOf(request))),
  )

  app.get(
    '/api/projects/:id/keys',
    openTo('admin', 'List the keys that are not revoked', {
      params: projectParams,
      querystring: listQuery,
      response: answers(200, pageOf(keySchema)),
    }),
    (request) => listKeys(pool, request.params.id, request.query),
  )

  app.delete(
    '/api/projects/:id/keys/:keyId',
    openTo('admin', 'Revoke a key; it stops working within 5 seconds', {
      params: z.strictObject({ id: pathId, keyId: pathId }),
      response: answers(204, nothing),
    }),
    async (request, reply) => {
      const keyId = requireId(request.params.keyId, 'key')
      await revokeKey(pool, request.params.id, keyId, actorOf(request))
      keys.forgetKey(keyId)
      return reply.code(204).send(null)
    },
  )
}
