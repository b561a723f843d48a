import { z } from 'zod'
import { unavailable } from '../../kernel/errors.ts'
import type { Metrics } from '../../observe/metrics.ts'
import { errorSchema } from '../errors.ts'
import type { App } from '../server.ts'
import { answers } from '../shapes.ts'

const tags = ['System']

/** Each part that must work before traffic makes sense. */
export interface Readiness {
  database: boolean
  migrations: boolean
  worker: boolean
}

const checks = z.strictObject({ database: z.boolean(), migrations: z.boolean(), worker: z.boolean() })
export const readinessSchema = z.strictObject({ status: z.literal('ready'), checks })

export function addSystemRoutes(
  app: App,
  { readiness, metrics, version }: { readiness: () => Promise<Readiness>; metrics: Metrics; version: string },
): void {
  app.get(
    '/healthz',
    {
      config: { access: 'public', unlimited: true },
      schema: {
        tags,
        summary: 'The process is alive',
        response: answers(200, z.strictObject({ status: z.literal('ok'), version: z.string() })),
      },
    },
    async () => ({ status: 'ok' as const, version }),
  )

  app.get(
    '/readyz',
    {
      config: { access: 'public', unlimited: true },
      schema: {
        tags,
        summary: 'Database, migrations and worker are ready',
        response: answers(200, readinessSchema),
      },
    },
    async () => {
      const state = await readiness()
      const missing = Object.entries(state).filter(([, ready]) => !ready)
      if (missing.length > 0) throw unavailable(`Not ready: ${missing.map(([part]) => part).join(', ')}.`)
      return { status: 'ready' as const, checks: state }
    },
  )

  app.get(
    '/metrics',
    {
      config: { access: 'instance' },
      schema: {
        tags,
        summary: 'Prometheus metrics',
        response: { 200: { content: { 'text/plain': { schema: z.string() } } }, default: errorSchema },
      },
    },
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
