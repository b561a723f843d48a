import { z } from 'zod'
import type { Db, Pool } from '../../db/pool.ts'
import { recommendWithModel } from '../../flows/recommend/recommend-with-model.ts'
import { flowTemplates } from '../../flows/templates/templates.ts'
import { roleIn } from '../../identity/users.ts'
import { pageOf } from '../../kernel/fields.ts'
import { innerField } from '../../kernel/flow.ts'
import { isInstanceAdmin, type Principal } from '../../kernel/principal.ts'
import { isAtLeast } from '../../kernel/role.ts'
import type { App } from '../http/app.ts'
import { principalOf } from '../http/auth.ts'
import type { ProjectPlaces } from '../http/project-places.ts'
import { routesOf } from '../http/routes-of.ts'
import type { FlowServices } from '../http/run-services.ts'
import { answers, projectParams } from '../http/shapes.ts'

const openTo = routesOf('Flows')
export const templateSchema = z.strictObject({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  usage: z.string(),
  pattern: z.string(),
  example: z.strictObject({ input: z.unknown() }),
  root: innerField,
})
export const workloadInput = z.strictObject({
  workload: z.string().min(1).max(20_000).regex(/\S/, 'must not be blank'),
})
export const recommendationSchema = z.strictObject({
  pattern: z.string(),
  definition: innerField,
  estimate: z.strictObject({ workers: z.int(), model_calls: z.int(), tokens: z.int(), duration: z.int() }),
  reasoning: z.string(),
})

export interface FlowTemplateRoutes {
  pool: Pool
  flows: Pick<FlowServices, 'decide' | 'patterns'>
  places: ProjectPlaces
}

export function addFlowTemplateRoutes(app: App, { pool, flows, places }: FlowTemplateRoutes): void {
  app.get(
    '/api/projects/:id/flow-templates',
    openTo('viewer', 'List the flow templates, which run without changes', {
      params: projectParams,
      response: answers(200, pageOf(templateSchema)),
    }),
    async () => ({
      items: flowTemplates.map((template) => ({ ...template, root: { ...template.root } })),
      next_cursor: null,
    }),
  )

  app.post(
    '/api/projects/:id/flows/recommend',
    openTo('viewer', 'Recommend a pattern for a workload, with a definition and an estimate', {
      params: projectParams,
      body: workloadInput,
      response: answers(200, recommendationSchema),
    }),
    async (request) => {
      const projectId = request.params.id
      const mayAsk = await maySpend(pool, principalOf(request), projectId)
      // A model may take a minute to answer.
      places.leave(request)
      const asked = { projectId, decide: mayAsk ? flows.decide : async () => null }
      const options = { workload: request.body.workload, templates: flowTemplates, patterns: flows.patterns }
      const { definition, ...recommended } = await recommendWithModel(asked, options)
      return { ...recommended, definition: { ...definition } }
    },
  )
}

/** A model call costs money, so a caller who may only read gets a recommendation without one. */
async function maySpend(db: Db, principal: Principal, projectId: string): Promise<boolean> {
  if (isInstanceAdmin(principal)) return true
  const role = principal.type === 'key' ? principal.role : await roleIn(db, principal.id ?? '', projectId)
  return role !== null && isAtLeast(role, 'member')
}
