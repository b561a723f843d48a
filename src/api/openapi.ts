import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod'
import type { Access } from './auth.ts'
import type { App } from './server.ts'
import { emptyBody } from './shapes.ts'

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
      const schema = input.schema?.body === emptyBody ? { ...input.schema, body: undefined } : input.schema
      const shown = jsonSchemaTransform({ ...input, schema } as never) // typed for a bare schema; ours are zod schemas
      const security = credentialsFor(input.route.config?.access ?? 'public')
      return { ...shown, schema: { ...shown.schema, security } }
    },
    transformObject: jsonSchemaTransformObject,
  })
  await app.register(async (docs) => {
    docs.addHook('onRoute', (route) => {
      route.config = { ...route.config, access: 'public' }
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

/** Any one of these opens the route; none is needed where the list is empty. */
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
