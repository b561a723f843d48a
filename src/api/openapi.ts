import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifySchema } from 'fastify'
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod'
import type { Access } from './auth.ts'
import { nothingHere } from './not-found.ts'
import type { App } from './server.ts'
import { emptyBody, emptyQuery } from './shapes.ts'

/** /openapi.json is generated from the schemas that validate; /docs shows it. Both need no credentials. */
export async function serveOpenApi(app: App, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Muster',
        version,
        description: 'Runs teams of AI agents that people can trust with real work.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'An API key or the instance admin token.' },
          session: { type: 'apiKey', in: 'cookie', name: 'muster_session', description: 'A signed-in person.' },
        },
      },
    },
    transform: (input) => {
      const shown = jsonSchemaTransform({ ...input, schema: withoutEmpty(input.schema) } as never) // typed for a bare schema; ours are zod schemas
      const security = credentialsFor(input.route.config?.access ?? 'public')
      const operationId = nameOperation(input.route.method, input.url)
      return { ...shown, schema: { ...shown.schema, operationId, security, ...headersOf(input) } }
    },
    transformObject: jsonSchemaTransformObject,
  })
  await app.register(async (docs) => {
    docs.addHook('onRoute', (route) => {
      route.config = { ...route.config, access: 'public' }
    })
    docs.addHook('onRequest', async (request) => {
      // The library below fails on a NUL, a backslash or a very long name instead of not finding it.
      const { '*': name } = request.params as { '*'?: string } // Fastify types params as unknown
      if (name !== undefined && !/^[A-Za-z][\w.-]{0,99}$/.test(name)) throw nothingHere()
    })
    await docs.register(swaggerUi, {
      routePrefix: '/docs',
      uiConfig: { docExpansion: 'list', tryItOutEnabled: false },
      theme: {
        title: 'Muster API',
        css: [{ filename: 'theme.css', content: '.swagger-ui .topbar { display: none !important }' }],
      },
    })
  })
  app.get('/openapi.json', { config: { access: 'public' }, schema: { hide: true } }, async () => app.swagger())
}

/** GET /api/projects/:id/keys is get_projects_id_keys: stable, and an identifier in any programming language. */
function nameOperation(method: string | string[], url: string): string {
  const path = url.replace(/^\/(api\/)?/, '').replace(/[^A-Za-z0-9]+/g, '_')
  return `${[method].flat().join('_').toLowerCase()}_${path}`.replace(/_+$/, '')
}

/** Leaves out bodies and queries that must be empty: they are checked but not documented. */
function withoutEmpty(schema: FastifySchema | undefined): FastifySchema {
  const { body, querystring, ...shown } = schema ?? {}
  return {
    ...shown,
    ...(body === undefined || body === emptyBody ? {} : { body }),
    ...(querystring === undefined || querystring === emptyQuery ? {} : { querystring }),
  }
}

/** The headers that many routes take: those that create something, and those below /v1 that work in a project. */
function headersOf({ schema, url }: { schema?: { response?: unknown } | undefined; url: string }): object {
  const creates = typeof schema?.response === 'object' && schema.response !== null && '201' in schema.response
  const key = { type: 'string', maxLength: 255, description: 'The same key and body give the same answer for 24 h.' }
  const project = {
    type: 'string',
    format: 'uuid',
    description: 'The project; with a key, the key’s own where absent.',
  }
  const properties = {
    ...(creates ? { 'idempotency-key': key } : {}),
    ...(url.startsWith('/v1/') ? { 'x-project-id': project } : {}),
  }
  return Object.keys(properties).length > 0 ? { headers: { type: 'object', properties } } : {}
}

/** Any one of these credentials opens the route; an empty list needs none. */
function credentialsFor(access: Access): Record<string, string[]>[] {
  switch (access) {
    case 'public':
      return []
    case 'person':
      return [{ session: [] }]
    default:
      return [{ bearer: [] }, { session: [] }]
  }
}
