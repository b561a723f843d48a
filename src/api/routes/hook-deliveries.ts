// The route through which other systems start agents. The hook's secret is its only credential.
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { conflict, invalidRequest, notFound, unauthenticated } from '../../kernel/errors.ts'
import { fault } from '../../kernel/fault.ts'
import { deliveredSchema, isWebhookId } from '../../kernel/hook.ts'
import { isId } from '../../kernel/id.ts'
import { putNewest } from '../../kernel/put-newest.ts'
import type { Cipher } from '../../secrets/cipher.ts'
import { createDeliver } from '../../triggers/deliver.ts'
import { type FoundHook, findHook } from '../../triggers/find-hook.ts'
import { verifyDelivery } from '../../triggers/verify-delivery.ts'
import type { App } from '../http/app.ts'
import { parseBody } from '../http/body.ts'
import type { ProjectPlaces } from '../http/project-places.ts'
import type { RateLimits } from '../http/rate-limits.ts'
import type { RunServices } from '../http/run-services.ts'
import { answers, pathId } from '../http/shapes.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The hook is found before the body is read. */
    hook: FoundHook | null
  }
}

const hookParams = z.strictObject({ hookId: pathId })
const deliveryHeaders = z.looseObject({
  'webhook-id': z.string().optional().describe('The same id on a hook gives the same run for 30 days.'),
  'webhook-timestamp': z.string().optional().describe('Seconds since 1970, at most 5 minutes from now.'),
  'webhook-signature': z.string().optional().describe('v1,<base64>; several signatures are separated by blanks.'),
  authorization: z.string().optional().describe('Bearer <secret>, for senders that cannot sign.'),
})

export interface HookDeliveryOptions {
  pool: Pool
  cipher: Cipher
  limits: RateLimits
  places: ProjectPlaces
  services: Pick<RunServices, 'onReady'>
}

export function addHookDeliveryRoutes(app: App, { pool, cipher, limits, places, services }: HookDeliveryOptions): void {
  const deliver = createDeliver(pool)
  const seen = createSeenIds()
  app.decorateRequest('hook', null)

  app.post(
    '/hooks/:hookId',
    {
      config: { access: 'public', hasOwnCredentials: true, keepsRawBody: true },
      onRequest: async (request) => {
        const { hookId } = request.params as z.infer<typeof hookParams> // not validated yet, but a path holds texts
        request.hook = await find(request, hookId)
      },
      schema: {
        tags: ['Hooks'],
        summary: "Start the hook's agent; the body is its input",
        description: 'Signed by Standard Webhooks or with the secret of the hook as a bearer token.',
        params: hookParams,
        headers: deliveryHeaders,
        body: z.unknown().meta({ description: 'Any JSON value.' }),
        response: answers(202, deliveredSchema),
      },
    },
    async (request, reply) => {
      const { hook, headers } = request
      if (hook === null) throw notFound('hook')
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
      if (!verifyDelivery(headers, body, { secrets: hook.openSecrets(), now: hook.now })) {
        limits.countAddress(request.ip)
        throw unauthenticated(
          'Sign with the secret of the hook (Standard Webhooks, within 5 minutes), or send the secret as "Authorization: Bearer <secret>".',
        )
      }
      limits.countHook(hook.id)
      const webhookId = requireWebhookId(request)
      // A delivery that was accepted once stays accepted, even with another body or a disabled agent.
      if (hook.earlierRunId === null) requireOpen(hook)
      const input = hook.earlierRunId === null ? parseBody(body) : null
      // Only a proved delivery takes a place, so that others do not fill the queue of the hook's project.
      if (!(await places.take(request, reply, hook.projectId))) return reply.hijack()
      let runId: string
      try {
        runId = await deliver(hook, { webhookId, input, requestId: request.id, address: request.ip })
      } finally {
        places.leave(request)
      }
      await fault('api.after_commit_before_reply')
      services.onReady()
      reply.code(202)
      return { run_id: runId }
    },
  )

  /** A request for an unknown hook counts for its address; a proved delivery counts for its hook later. */
  async function find(request: FastifyRequest, id: string): Promise<FoundHook> {
    // Guessed ids must not cost the database more than the address's share. Deliveries to known hooks go on.
    if (!seen.has(id)) limits.requireAddress(request.ip)
    const webhookId = sentWebhookId(request)
    const isStorable = webhookId !== null && isWebhookId(webhookId)
    const hook = isId(id) ? await findHook(pool, cipher, id, isStorable ? webhookId : null) : null
    if (hook === null) {
      seen.delete(id)
      limits.countAddress(request.ip)
      throw notFound('hook')
    }
    seen.add(id)
    return hook
  }
}

function requireOpen(hook: FoundHook): void {
  if (!hook.isEnabled) throw conflict('The agent of this hook is disabled. Enable it first.')
  if (!hook.takesWebhooks) throw conflict('The agent of this hook is not triggered by webhooks any more.')
}

function requireWebhookId(request: FastifyRequest): string | null {
  const webhookId = sentWebhookId(request)
  if (webhookId !== null && !isWebhookId(webhookId)) {
    throw invalidRequest('webhook-id must be 1 to 255 visible ASCII characters.')
  }
  return webhookId
}

function sentWebhookId({ headers }: FastifyRequest): string | null {
  const sent = headers['webhook-id']
  return typeof sent === 'string' ? sent : null
}

const MOST_IDS = 10_000

/** The ids of hooks that deliveries found. The number of ids is bounded: the oldest are forgotten. */
function createSeenIds(): { has(id: string): boolean; add(id: string): void; delete(id: string): void } {
  const ids = new Map<string, true>()
  return {
    has: (id) => ids.has(id),
    add: (id) => putNewest(ids, id, true, MOST_IDS),
    delete: (id) => void ids.delete(id),
  }
}
