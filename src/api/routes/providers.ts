import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { pageOf } from '../../kernel/fields.ts'
import { providerInput, providerPatch, providerSchema } from '../../kernel/provider.ts'
import { createProvider, deleteProvider, getProvider, listProviders, updateProvider } from '../../models/providers.ts'
import type { Cipher } from '../../secrets/cipher.ts'
import { actorOf } from '../auth.ts'
import type { Create } from '../idempotency.ts'
import type { App } from '../server.ts'
import { answers, listQuery, nothing } from '../shapes.ts'

const tags = ['Providers']
const nameParams = z.strictObject({ name: z.string() })

export function addProviderRoutes(
  app: App,
  {
    pool,
    cipher,
    create,
    onProvider = () => {},
  }: { pool: Pool; cipher: Cipher; create: Create; onProvider?: ((name: string) => void) | undefined },
): void {
  app.post(
    '/api/providers',
    {
      config: { access: 'instance' },
      schema: { tags, summary: 'Add a model provider', body: providerInput, response: answers(201, providerSchema) },
    },
    (request, reply) => create(request, reply, (db) => createProvider(db, cipher, request.body, actorOf(request))),
  )

  app.get(
    '/api/providers',
    {
      config: { access: 'instance' },
      schema: {
        tags,
        summary: 'List the providers, by name',
        querystring: listQuery,
        response: answers(200, pageOf(providerSchema)),
      },
    },
    (request) => listProviders(pool, request.query),
  )

  app.get(
    '/api/providers/:name',
    {
      config: { access: 'instance' },
      schema: { tags, summary: 'Read a provider', params: nameParams, response: answers(200, providerSchema) },
    },
    (request) => getProvider(pool, request.params.name),
  )

  app.patch(
    '/api/providers/:name',
    {
      config: { access: 'instance' },
      schema: {
        tags,
        summary: 'Change a provider; a null key or URL is removed',
        params: nameParams,
        body: providerPatch,
        response: answers(200, providerSchema),
      },
    },
    async (request) => {
      const provider = await updateProvider(pool, cipher, request.params.name, request.body, actorOf(request))
      onProvider(provider.name)
      return provider
    },
  )

  app.delete(
    '/api/providers/:name',
    {
      config: { access: 'instance' },
      schema: { tags, summary: 'Delete a provider', params: nameParams, response: answers(204, nothing) },
    },
    async (request, reply) => {
      await deleteProvider(pool, request.params.name, actorOf(request))
      onProvider(request.params.name)
      return reply.code(204).send(null)
    },
  )
}
