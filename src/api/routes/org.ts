import { z } from 'zod'
import { getAgent } from '../../agents/agents.ts'
import type { Pool } from '../../db/pool.ts'
import type { Journal } from '../../journal/journal.ts'
import { agentSchema } from '../../kernel/agent.ts'
import { agentMessageSchema } from '../../kernel/agent-message.ts'
import { pageOf } from '../../kernel/fields.ts'
import type { Log } from '../../kernel/log.ts'
import { agentHealthSchema, budgetInput, orgSchema } from '../../kernel/org.ts'
import { addTokens } from '../../org/budget.ts'
import { type Control, type ControlParts, controlAgent, controlAll } from '../../org/control.ts'
import { listMessages } from '../../org/messages.ts'
import { readHealth, readOrg } from '../../org/read-org.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import type { Once } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import type { OrgServices } from '../http/run-services.ts'
import { answers, emptyBody, listQuery, pathId, projectParams, requireId } from '../http/shapes.ts'

const openTo = routesOf('Organisation')
const agentParams = z.strictObject({ id: pathId, agentId: pathId })

const controls: readonly { control: Control; one: string; all: string }[] = [
  {
    control: 'start',
    one: 'Let an agent take up its tasks; an agent that does already is not changed',
    all: 'Start all agents of the project that have tokens',
  },
  { control: 'stop', one: 'Pause an agent; the task under way is handed back', all: 'Stop all agents of the project' },
  {
    control: 'restart',
    one: 'Let an agent work again; the task under way begins anew from its last state',
    all: 'Restart all agents of the project that have tokens',
  },
]

export function addOrgRoutes(
  app: App,
  { pool, journal, log, org, once }: { pool: Pool; journal: Journal; log: Log; org: OrgServices; once: Once },
): void {
  const parts: ControlParts = { pool, journal, log }
  for (const { control, one, all } of controls) {
    app.post(
      `/api/projects/:id/agents/:agentId/${control}`,
      openTo('admin', one, { params: agentParams, body: emptyBody, response: answers(200, agentSchema) }),
      async (request) => {
        const { id: projectId, agentId: given } = request.params as z.infer<typeof agentParams> // as the schema says
        const agentId = requireId(given, 'agent')
        await controlAgent(parts, control, { projectId, agentId, actor: actorOf(request) })
        org.poke(projectId)
        return getAgent(pool, projectId, agentId)
      },
    )
    app.post(
      `/api/projects/:id/org/${control}`,
      openTo('admin', all, { params: projectParams, body: emptyBody, response: answers(200, orgSchema) }),
      async (request) => {
        const { id: projectId } = request.params as { id: string } // as the schema says
        await controlAll(parts, control, { projectId, actor: actorOf(request) })
        org.poke(projectId)
        return { items: await readOrg(pool, projectId) }
      },
    )
  }

  app.get(
    '/api/projects/:id/org',
    openTo('viewer', 'Read the organisation as a tree', {
      isHeavy: true,
      params: projectParams,
      response: answers(200, orgSchema),
    }),
    async (request) => ({ items: await readOrg(pool, request.params.id) }),
  )

  app.get(
    '/api/projects/:id/org/health',
    openTo('viewer', 'Read which agents take up tasks', {
      params: projectParams,
      querystring: listQuery,
      response: answers(200, pageOf(agentHealthSchema)),
    }),
    (request) => readHealth(pool, request.params.id, request.query),
  )

  app.post(
    '/api/projects/:id/agents/:agentId/budget',
    openTo('admin', "Add tokens to an agent's allocation; interrupted work goes on", {
      params: agentParams,
      body: budgetInput,
      response: answers(200, agentSchema),
    }),
    async (request, reply) => {
      const { id: projectId } = request.params
      const agentId = requireId(request.params.agentId, 'agent')
      // A client repeats a top-up whose answer was lost. The tokens must not be added twice.
      const { replayed } = await once(request, async (tx) => {
        await addTokens(tx, log, { projectId, agentId, add: request.body.add, actor: actorOf(request) })
        return null
      })
      if (replayed) reply.header('idempotency-replayed', 'true')
      org.poke(projectId)
      return getAgent(pool, projectId, agentId)
    },
  )

  app.get(
    '/api/projects/:id/agents/:agentId/messages',
    openTo('viewer', 'List the messages that an agent sent and received', {
      isHeavy: true,
      params: agentParams,
      querystring: listQuery,
      response: answers(200, pageOf(agentMessageSchema)),
    }),
    async (request) => {
      const agent = await getAgent(pool, request.params.id, requireId(request.params.agentId, 'agent'))
      return listMessages(pool, request.params.id, agent.id, request.query)
    },
  )
}
