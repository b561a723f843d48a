import { z } from 'zod'
import { unavailable } from '../../kernel/errors.ts'
import type { Metrics } from '../../observe/metrics.ts'
import type { App } from '../http/app.ts'
import { errorSchema } from '../http/errors.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers } from '../http/shapes.ts'

const openTo = routesOf('System')

export interface Readiness {
  database: boolean
  migrations: boolean
  worker: boolean
}

const checks = z.strictObject({ database: z.boolean(), migrations: z.boolean(), worker: z.boolean() })
export const healthSchema = z.strictObject({ status: z.literal('ok'), version: z.string() })
export const readinessSchema = z.strictObject({ status: z.literal('ready'), checks })

export function addSystemRoutes(
  app: App,
  { readiness, metrics, version }: { readiness: () => Promise<Readiness>; metrics: Metrics; version: string },
): void {
  app.get(
    '/healthz',
    openTo('public', 'Check that the process is alive', {
      unlimited: true,
      response: answers(200, healthSchema),
    }),
    async () => ({ status: 'ok' as const, version }),
  )

  app.get(
    '/readyz',
    openTo('public', 'Check that database, migrations and worker are ready', {
      unlimited: true,
      response: answers(200, readinessSchema),
    }),
    async () => {
      const state = await readiness()
      const missing = Object.entries(state).filter(([, ready]) => !ready)
      if (missing.length > 0) throw unavailable(`Not ready: ${missing.map(([part]) => part).join(', ')}.`)
      return { status: 'ready' as const, checks: state }
    },
  )

  app.get(
    '/metrics',
    openTo('instance', 'Read the Prometheus metrics', {
      response: { 200: { content: { 'text/plain': { schema: z.string() } } }, default: errorSchema },
    }),
    async (_request, reply) => {
      const { contentType, text } = await metrics.render()
      // A buffer bypasses the JSON serializer of the schema above.
      return reply
        .type(contentType)
        .serializer((body: unknown) => String(body))
        .send(text)
    },
  )
}
