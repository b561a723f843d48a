import { z } from 'zod'
import { invalidRequest } from '../../kernel/errors.ts'
import { pageOf } from '../../kernel/fields.ts'
import { listedTool } from '../../kernel/listed-tool.ts'
import { mcpServerName } from '../../kernel/mcp-server.ts'
import type { ToolRegistry } from '../../tools/registry.ts'
import type { App } from '../http/app.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, listQuery, projectParams } from '../http/shapes.ts'

/** The tools of Muster and of the app module come first, then those of MCP servers by the names of these. */
const toolQuery = z.strictObject({ cursor: listQuery.shape.cursor })

const openTo = routesOf('Agents')

export function addToolRoutes(app: App, { tools }: { tools: Pick<ToolRegistry, 'list'> }): void {
  app.get(
    '/api/projects/:id/tools',
    openTo('viewer', 'List the tools that agents of this project may name', {
      params: projectParams,
      querystring: toolQuery,
      response: answers(200, pageOf(listedTool)),
    }),
    (request) => {
      const { cursor = null } = request.query
      if (cursor !== null && !mcpServerName.safeParse(cursor).success) {
        throw invalidRequest('cursor is not one that this list gave.')
      }
      return tools.list(request.params.id, cursor)
    },
  )
}
