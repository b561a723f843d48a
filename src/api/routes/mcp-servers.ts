import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { pageOf } from '../../kernel/fields.ts'
import {
  type McpServer,
  mcpApproval,
  mcpServerInput,
  mcpServerSchema,
  withoutSecrets,
} from '../../kernel/mcp-server.ts'
import { isInstanceAdmin } from '../../kernel/principal.ts'
import type { Mcp } from '../../tools/mcp.ts'
import { getMcpServer, listMcpServers } from '../../tools/mcp-servers.ts'
import type { App } from '../http/app.ts'
import { actorOf, principalOf } from '../http/auth.ts'
import type { Create } from '../http/idempotency.ts'
import type { ProjectPlaces } from '../http/project-places.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, listQuery, nothing, pathId, projectParams } from '../http/shapes.ts'

const openTo = routesOf('MCP servers')
const serverParams = z.strictObject({ id: pathId, name: z.string() })

export interface McpServerRoutes {
  pool: Pool
  mcp: Mcp
  create: Create
  places: ProjectPlaces
}

export function addMcpServerRoutes(app: App, { pool, mcp, create, places }: McpServerRoutes): void {
  app.post(
    '/api/projects/:id/mcp-servers',
    openTo('admin', 'Add an MCP server; its tools are read and thereby approved', {
      params: projectParams,
      body: mcpServerInput,
      response: answers(201, mcpServerSchema),
    }),
    async (request, reply) => {
      const who = { actor: actorOf(request), isInstanceAdmin: isInstanceAdmin(principalOf(request)) }
      // The MCP server is asked before the transaction: a slow server must not hold a database connection or a place.
      places.leave(request)
      const store = await mcp.prepare(request.params.id, request.body, who)
      return create(request, reply, store)
    },
  )

  app.get(
    '/api/projects/:id/mcp-servers',
    openTo('viewer', 'List the MCP servers', {
      params: projectParams,
      querystring: listQuery,
      response: answers(200, pageOf(mcpServerSchema)),
    }),
    async (request) => {
      const page = await listMcpServers(pool, request.params.id, request.query)
      return { ...page, items: page.items.map((server) => shownTo(request, server)) }
    },
  )

  app.get(
    '/api/projects/:id/mcp-servers/:name',
    openTo('viewer', 'Read an MCP server, with its present tools if they differ from the approved ones', {
      params: serverParams,
      response: answers(200, mcpServerSchema),
    }),
    async (request) => shownTo(request, await getMcpServer(pool, request.params.id, request.params.name)),
  )

  app.post(
    '/api/projects/:id/mcp-servers/:name/approve',
    openTo('admin', 'Approve the tools that the server offers now', {
      params: serverParams,
      body: mcpApproval,
      response: answers(200, mcpServerSchema),
    }),
    (request) => mcp.approve(request.params.id, request.params.name, request.body, actorOf(request)),
  )

  app.delete(
    '/api/projects/:id/mcp-servers/:name',
    openTo('admin', 'Delete an MCP server; its tools are not called any more', {
      params: serverParams,
      response: answers(204, nothing),
    }),
    async (request, reply) => {
      await mcp.remove(request.params.id, request.params.name, actorOf(request))
      return reply.code(204).send(null)
    },
  )
}

const shownTo = (request: FastifyRequest, server: McpServer): McpServer =>
  request.projectRole === 'admin' ? server : withoutSecrets(server)
