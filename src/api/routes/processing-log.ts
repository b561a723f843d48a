import { z } from 'zod'
import { getAgent } from '../../agents/agents.ts'
import type { Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { pageOf } from '../../kernel/fields.ts'
import { processingEntrySchema, processingStatuses } from '../../kernel/object.ts'
import { listEntries, retryEntry } from '../../triggers/processing-log.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, emptyBody, listQuery, pathId, requireId } from '../http/shapes.ts'

const openTo = routesOf('Agents')

export function addProcessingLogRoutes(app: App, { pool, onReady }: { pool: Pool; onReady: () => void }): void {
  app.get(
    '/api/projects/:id/agents/:agentId/processing-log',
    openTo('viewer', 'List the events that the reactions of an agent gave it, with their outcomes', {
      params: z.strictObject({ id: pathId, agentId: pathId }),
      querystring: listQuery.extend({ status: z.enum(processingStatuses).optional() }),
      response: answers(200, pageOf(processingEntrySchema)),
    }),
    async (request) => {
      const { limit, cursor, status } = request.query
      const { id } = await getAgent(pool, request.params.id, requireId(request.params.agentId, 'agent'))
      return listEntries(pool, id, { status }, { limit, cursor })
    },
  )

  app.post(
    '/api/projects/:id/agents/:agentId/processing-log/:entryId/retry',
    openTo('member', 'Try a failed, abandoned or skipped entry again, with a new run', {
      params: z.strictObject({ id: pathId, agentId: pathId, entryId: pathId }),
      body: emptyBody,
      response: answers(200, processingEntrySchema),
    }),
    async (request) => {
      const { id: projectId } = request.params
      const agent = await getAgent(pool, projectId, requireId(request.params.agentId, 'agent'))
      const entryId = requireId(request.params.entryId, 'entry of the processing log')
      const actor = actorOf(request)
      const entry = await inTransaction(pool, (tx) => retryEntry(tx, { projectId, agentId: agent.id, entryId, actor }))
      onReady()
      return entry
    },
  )
}
