import { z } from 'zod'
import type { Db, Pool } from '../../db/pool.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import { instantField } from '../../kernel/fields.ts'
import { type SystemConfig, systemConfig, variantName } from '../../kernel/supervisor.ts'
import { providerExists } from '../../models/providers.ts'
import { getSystem, listSystems, putSystem } from '../../supervisor/systems.ts'
import type { ToolRegistry } from '../../tools/registry.ts'
import { actorOf } from '../auth.ts'
import type { Once } from '../idempotency.ts'
import type { App } from '../server.ts'
import { answers, pathId, projectParams } from '../shapes.ts'

const tags = ['Supervisor']
const systemParams = z.strictObject({ id: pathId, variant: variantName })
const systemSchema = systemConfig.extend({
  variant: z.string(),
  updated_at: instantField.nullable().describe('Null while the variant is as it came with Muster.'),
})
/** The body of a GET may be put back as it is. */
const systemInput = systemSchema.partial({ variant: true, updated_at: true })

export function addSystemVariantRoutes(
  app: App,
  { pool, once, registry }: { pool: Pool; once: Once; registry: Pick<ToolRegistry, 'check'> },
): void {
  app.get(
    '/api/projects/:id/systems',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'List the system variants',
        params: projectParams,
        response: answers(200, z.strictObject({ items: z.array(systemSchema) })),
      },
    },
    async (request) => ({ items: await listSystems(pool, request.params.id) }),
  )

  app.get(
    '/api/projects/:id/systems/:variant',
    {
      config: { access: 'viewer' },
      schema: { tags, summary: 'Read a system variant', params: systemParams, response: answers(200, systemSchema) },
    },
    (request) => getSystem(pool, request.params.id, request.params.variant),
  )

  app.put(
    '/api/projects/:id/systems/:variant',
    {
      config: { access: 'admin' },
      schema: {
        tags,
        summary: 'Set the whole configuration of a system variant; runs under way keep theirs',
        params: systemParams,
        body: systemInput,
        response: answers(200, systemSchema),
      },
    },
    async (request) => {
      const { id: projectId, variant } = request.params
      const { kept } = await once(request, async (tx) => {
        const { variant: named = variant, updated_at: _, ...config } = request.body
        if (named !== variant) throw invalidRequest(`variant: the address says ${variant}.`)
        const problem = await nameProblem(tx, registry, projectId, config)
        if (problem) throw invalidRequest(problem)
        return putSystem(tx, projectId, variant, config, actorOf(request))
      })
      return kept
    },
  )
}

/** Every provider and tool that a system names must exist when it is written. */
async function nameProblem(
  db: Db,
  registry: Pick<ToolRegistry, 'check'>,
  projectId: string,
  { supervisor, specialists, finalizer, escalation }: SystemConfig,
): Promise<string | null> {
  for (const { model } of [supervisor, ...specialists, finalizer, escalation]) {
    if (model && !(await providerExists(db, model.provider))) {
      return `model.provider: there is no provider called ${model.provider}.`
    }
  }
  const unknown = await registry.check(
    db,
    projectId,
    specialists.flatMap(({ tools }) => tools),
  )
  return unknown === null ? null : `tools: ${unknown}`
}
