import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifySchema } from 'fastify'
import type { z } from 'zod'
import type { App } from './app.ts'
import type { Access } from './auth.ts'
import { type Components, createComponents, type Nouns, type ShownSchema } from './components.ts'
import { nothingHere } from './not-found.ts'
import { emptyBody, emptyQuery } from './shapes.ts'

/** /openapi.json is generated from the schemas that validate; /docs shows it. Both need no credentials. */
export async function serveOpenApi(app: App, { version, nouns }: { version: string; nouns: Nouns }): Promise<void> {
  const components = createComponents(nouns)
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
      const { url, route, schema = {} } = input
      if (schema.hide) return { url, schema: { hide: true } }
      const shown = showSchemas(withoutEmpty(schema), components)
      const security = credentialsFor(route.config?.access ?? 'public')
      const operationId = nameOperation(route.method, url)
      return { url, schema: { ...shown, operationId, security, ...headersOf(input) } }
    },
    transformObject: (document) =>
      'openapiObject' in document ? components.complete(document.openapiObject) : document.swaggerObject,
  })
  await app.register(async (docs) => {
    docs.addHook('onRoute', (route) => {
      route.config = { ...route.config, access: 'public' }
    })
    docs.addHook('onRequest', async (request) => {
      // The library behind this route fails on a NUL, a backslash or a very long name; 404 is the right answer.
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

/** The answer by its media types, or its schema alone if it is JSON. */
type Answered = z.ZodType | { description?: string; content: Record<string, { schema: z.ZodType }> }

function showSchemas(schema: FastifySchema, { show }: Components): FastifySchema {
  // Every schema of ours is a zod schema; Fastify types them as unknown.
  const { body, querystring, params, headers, response = {}, ...rest } = schema
  const given = { body, querystring, params, headers } as Record<string, z.ZodType | undefined>
  const asked = Object.entries(given).flatMap(([part, each]): [string, ShownSchema][] =>
    each === undefined ? [] : [[part, show(each, 'input')]],
  )
  const answers = Object.entries(response as Record<string, Answered>).map(([status, each]) => {
    if (!('content' in each)) return [status, show(each, 'output')]
    const content = Object.entries(each.content).map(([type, media]) => [
      type,
      { schema: show(media.schema, 'output') },
    ])
    return [status, { ...each, content: Object.fromEntries(content) }]
  })
  return { ...rest, ...Object.fromEntries(asked), response: Object.fromEntries(answers) }
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

interface Documented {
  url: string
  schema?: FastifySchema | undefined
  route: { method: string | string[] }
}

/** The headers of many routes: of routes that create something, and of routes below /v1 that work in a project. */
function headersOf({ schema, url, route }: Documented): object {
  const { response } = schema ?? {}
  const creates = route.method === 'POST' && typeof response === 'object' && response !== null && '201' in response
  const key = { type: 'string', maxLength: 255, description: 'The same key and body give the same answer for 24 h.' }
  const project = {
    type: 'string',
    format: 'uuid',
    description: 'The id of the project. With an API key the default is the key’s own project.',
  }
  const properties = {
    ...(creates ? { 'idempotency-key': key } : {}),
    ...(url.startsWith('/v1/') ? { 'x-project-id': project } : {}),
  }
  return Object.keys(properties).length > 0 ? { headers: { type: 'object', properties } } : {}
}

/** Any one of these credentials opens the route; an empty list means that the route needs none. */
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
