import { z } from 'zod'
import { recordAudit } from '../../audit/record.ts'
import type { Pool } from '../../db/pool.ts'
import { tryProvider } from '../../journal/provider-outages.ts'
import { pageOf } from '../../kernel/fields.ts'
import {
  providerInput,
  providerPatch,
  providerSchema,
  providerTestInput,
  providerTestSchema,
} from '../../kernel/provider.ts'
import { createProvider, deleteProvider, getProvider, listProviders, updateProvider } from '../../models/providers.ts'
import type { TestProvider } from '../../models/test-provider.ts'
import type { Cipher } from '../../secrets/cipher.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import type { Create } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, listQuery, nothing } from '../http/shapes.ts'

const openTo = routesOf('Providers')
const nameParams = z.strictObject({ name: z.string() })

export interface ProviderRouteOptions {
  pool: Pool
  cipher: Cipher
  create: Create
  onProvider?: ((name: string) => void) | undefined
  testProvider: TestProvider
}

export function addProviderRoutes(
  app: App,
  { pool, cipher, create, onProvider = () => {}, testProvider }: ProviderRouteOptions,
): void {
  app.post(
    '/api/providers',
    openTo('instance', 'Add a model provider', { body: providerInput, response: answers(201, providerSchema) }),
    (request, reply) => create(request, reply, (db) => createProvider(db, cipher, request.body, actorOf(request))),
  )

  app.get(
    '/api/providers',
    openTo('instance', 'List the providers, by name', {
      querystring: listQuery,
      response: answers(200, pageOf(providerSchema)),
    }),
    (request) => listProviders(pool, request.query),
  )

  app.get(
    '/api/providers/:name',
    openTo('instance', 'Read a provider', { params: nameParams, response: answers(200, providerSchema) }),
    (request) => getProvider(pool, request.params.name),
  )

  app.patch(
    '/api/providers/:name',
    openTo('instance', 'Change a provider; a null key or URL is removed', {
      params: nameParams,
      body: providerPatch,
      response: answers(200, providerSchema),
    }),
    async (request) => {
      const provider = await updateProvider(pool, cipher, request.params.name, request.body, actorOf(request))
      onProvider(provider.name)
      const { base_url, api_key, options } = request.body
      if ([base_url, api_key, options].some((field) => field !== undefined)) await tryProvider(pool, provider.name)
      return provider
    },
  )

  app.delete(
    '/api/providers/:name',
    openTo('instance', 'Delete a provider', { params: nameParams, response: answers(204, nothing) }),
    async (request, reply) => {
      await deleteProvider(pool, request.params.name, actorOf(request))
      onProvider(request.params.name)
      await tryProvider(pool, request.params.name)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/api/providers/:name/test',
    openTo('instance', 'Make one small call to a provider and say whether it works', {
      params: nameParams,
      body: providerTestInput.nullish(),
      response: answers(200, providerTestSchema),
    }),
    async (request) => {
      const { name } = request.params
      const result = await testProvider(name, request.body?.model)
      const { ok, model } = result
      const note = { action: 'provider.test', targetType: 'provider', targetId: name, details: { ok, model } }
      await recordAudit(pool, { ...note, actor: actorOf(request), projectId: null })
      return result
    },
  )
}
