import { z } from 'zod'
import type { Db, Pool } from '../../db/pool.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import { instantField } from '../../kernel/fields.ts'
import { type SystemConfig, systemConfig, variantName } from '../../kernel/supervisor.ts'
import { unknownProvider } from '../../models/providers.ts'
import { getSystem, listSystems, putSystem, requestShares } from '../../supervisor/systems.ts'
import { approvalProblem } from '../../tools/approval-problem.ts'
import type { ToolRegistry } from '../../tools/registry.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import type { Once } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, pathId, projectParams } from '../http/shapes.ts'

const openTo = routesOf('Supervisor')
const systemParams = z.strictObject({ id: pathId, variant: variantName })
export const systemSchema = systemConfig.extend({
  variant: z.string(),
  updated_at: instantField.nullable().describe('Null while the variant is as it came with Muster.'),
})
export const listedSystemSchema = systemSchema.extend({
  share: z.number().describe('The part (0 to 1) of the requests that name neither a variant nor an earlier context.'),
})
export const systemListSchema = z.strictObject({ items: z.array(listedSystemSchema), next_cursor: z.null() })
/** The body of a PUT, which may be the answer of a GET unchanged. */
export const systemInput = systemSchema.partial({ variant: true, updated_at: true })

export interface SystemRouteOptions {
  pool: Pool
  once: Once
  registry: Pick<ToolRegistry, 'check'>
  /** The value of SYSTEM_VARIANT. */
  systemVariant: string | null
}

export function addSystemVariantRoutes(app: App, { pool, once, registry, systemVariant }: SystemRouteOptions): void {
  app.get(
    '/api/projects/:id/systems',
    openTo('viewer', 'List the system variants that POST /v1/agent/run chooses from, by name', {
      params: projectParams,
      response: answers(200, systemListSchema),
    }),
    async (request) => {
      const systems = await listSystems(pool, request.params.id)
      const shares = requestShares(systems, systemVariant)
      const items = systems.map((system) => ({ ...system, share: shares.get(system.variant) ?? 0 }))
      return { items, next_cursor: null }
    },
  )

  app.get(
    '/api/projects/:id/systems/:variant',
    openTo('viewer', 'Read a system variant', { params: systemParams, response: answers(200, systemSchema) }),
    (request) => getSystem(pool, request.params.id, request.params.variant),
  )

  app.put(
    '/api/projects/:id/systems/:variant',
    openTo('admin', 'Set the whole configuration of a system variant; runs under way keep theirs', {
      params: systemParams,
      body: systemInput,
      response: answers(200, systemSchema),
    }),
    async (request) => {
      const { id: projectId, variant } = request.params
      const { kept } = await once(request, async (tx) => {
        const { variant: named = variant, updated_at: _, ...config } = request.body
        if (named !== variant) throw invalidRequest(`variant: must be ${variant}, as in the address.`)
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
    const problem = model ? await unknownProvider(db, model.provider) : null
    if (problem !== null) return `model.provider: ${problem}`
  }
  const names = specialists.flatMap(({ tools }) => tools)
  const unknown = await registry.check(db, projectId, names)
  if (unknown !== null) return `tools: ${unknown}`
  for (const { name, tools, require_approval: approved = [] } of specialists) {
    const problem = await approvalProblem(registry, db, projectId, { given: tools, approved })
    if (problem !== null) return `${name}: ${problem}`
  }
  return null
}
