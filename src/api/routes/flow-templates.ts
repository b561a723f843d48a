import { z } from 'zod'
import type { Db, Pool } from '../../db/pool.ts'
import { type Decide, recommendWithModel } from '../../flows/recommend-with-model.ts'
import { flowTemplates } from '../../flows/templates/templates.ts'
import { roleIn } from '../../identity/users.ts'
import { jsonObject, pageOf } from '../../kernel/fields.ts'
import { isInstanceAdmin, type Principal } from '../../kernel/principal.ts'
import { isAtLeast } from '../../kernel/role.ts'
import { principalOf } from '../auth.ts'
import type { ProjectPlaces } from '../project-places.ts'
import type { App } from '../server.ts'
import { answers, projectParams } from '../shapes.ts'

const tags = ['Flows']
const templateSchema = z.strictObject({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  usage: z.string(),
  pattern: z.string(),
  example: z.strictObject({ input: z.unknown() }),
  root: jsonObject,
})
const recommendationSchema = z.strictObject({
  pattern: z.string(),
  definition: jsonObject,
  estimate: z.strictObject({ workers: z.int(), model_calls: z.int(), tokens: z.int(), duration: z.int() }),
  reasoning: z.string(),
})

export interface FlowTemplateRoutes {
  pool: Pool
  decide: Decide
  places: ProjectPlaces
}

export function addFlowTemplateRoutes(app: App, { pool, decide, places }: FlowTemplateRoutes): void {
  app.get(
    '/api/projects/:id/flow-templates',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'Flows to begin with; they run as they are',
        params: projectParams,
        response: answers(200, pageOf(templateSchema)),
      },
    },
    async () => ({
      items: flowTemplates.map((template) => ({ ...template, root: { ...template.root } })),
      next_cursor: null,
    }),
  )

  app.post(
    '/api/projects/:id/flows/recommend',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'Which pattern suits a workload, with a definition and an estimate',
        params: projectParams,
        body: z.strictObject({ workload: z.string().min(1).max(20_000).regex(/\S/, 'must not be blank') }),
        response: answers(200, recommendationSchema),
      },
    },
    async (request) => {
      const projectId = request.params.id
      const mayAsk = await maySpend(pool, principalOf(request), projectId)
      // A model may take a minute to answer.
      places.leave(request)
      const asked = { projectId, decide: mayAsk ? decide : async () => null }
      const options = { workload: request.body.workload, templates: flowTemplates }
      const { definition, ...recommended } = await recommendWithModel(asked, options)
      return { ...recommended, definition: { ...definition } }
    },
  )
}

/** A model call costs money, and a caller who may only read spends none. */
async function maySpend(db: Db, principal: Principal, projectId: string): Promise<boolean> {
  if (isInstanceAdmin(principal)) return true
  const role = principal.type === 'key' ? principal.role : await roleIn(db, principal.id ?? '', projectId)
  return role !== null && isAtLeast(role, 'member')
}
