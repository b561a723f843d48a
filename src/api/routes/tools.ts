import { z } from 'zod'
import { listedTool } from '../../kernel/listed-tool.ts'
import type { ToolRegistry } from '../../tools/registry.ts'
import type { App } from '../server.ts'
import { answers, projectParams } from '../shapes.ts'

export function addToolRoutes(app: App, { tools }: { tools: Pick<ToolRegistry, 'list'> }): void {
  app.get(
    '/api/projects/:id/tools',
    {
      config: { access: 'viewer' },
      schema: {
        tags: ['Agents'],
        summary: 'List the tools that agents of this project may name',
        params: projectParams,
        response: answers(200, z.strictObject({ items: z.array(listedTool) })),
      },
    },
    async (request) => ({ items: await tools.list(request.params.id) }),
  )
}
