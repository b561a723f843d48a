import { z } from 'zod'
import { getAgent } from '../../agents/agents.ts'
import type { Pool } from '../../db/pool.ts'
import type { Journal } from '../../journal/append.ts'
import { agentSchema } from '../../kernel/agent.ts'
import { agentMessageSchema } from '../../kernel/agent-message.ts'
import { pageOf } from '../../kernel/fields.ts'
import type { Log } from '../../kernel/log.ts'
import { agentHealthSchema, budgetInput, orgSchema } from '../../kernel/org.ts'
import { addTokens } from '../../org/budget.ts'
import { type Control, type ControlParts, controlAgent, controlAll } from '../../org/control.ts'
import { listMessages } from '../../org/messages.ts'
import { readHealth, readOrg } from '../../org/read-org.ts'
import { actorOf } from '../auth.ts'
import type { OrgServices } from '../run-services.ts'
import type { App } from '../server.ts'
import { answers, emptyBody, listQuery, pathId, projectParams, requireId } from '../shapes.ts'

const tags = ['Organisation']
const agentParams = z.strictObject({ id: pathId, agentId: pathId })

const controls: readonly { control: Control; one: string; all: string }[] = [
  {
    control: 'start',
    one: 'Let an agent take up its tasks; nothing happens if it does',
    all: 'Start all agents of the project that have tokens',
  },
  { control: 'stop', one: 'Pause an agent; the task under way is handed back', all: 'Stop all agents of the project' },
  {
    control: 'restart',
    one: 'Let an agent work again; the task under way begins anew where it stood',
    all: 'Restart all agents of the project that have tokens',
  },
]

export function addOrgRoutes(
  app: App,
  { pool, journal, log, org }: { pool: Pool; journal: Journal; log: Log; org: OrgServices },
): void {
  const parts: ControlParts = { pool, journal, log }
  for (const { control, one, all } of controls) {
    app.post(
      `/api/projects/:id/agents/:agentId/${control}`,
      {
        config: { access: 'admin' },
        schema: { tags, summary: one, params: agentParams, body: emptyBody, response: answers(200, agentSchema) },
      },
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
      {
        config: { access: 'admin' },
        schema: { tags, summary: all, params: projectParams, body: emptyBody, response: answers(200, orgSchema) },
      },
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
    {
      config: { access: 'viewer', isHeavy: true },
      schema: {
        tags,
        summary: 'Read the organisation as a tree',
        params: projectParams,
        response: answers(200, orgSchema),
      },
    },
    async (request) => ({ items: await readOrg(pool, request.params.id) }),
  )

  app.get(
    '/api/projects/:id/org/health',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'Read which agents take up tasks',
        params: projectParams,
        querystring: listQuery,
        response: answers(200, pageOf(agentHealthSchema)),
      },
    },
    (request) => readHealth(pool, request.params.id, request.query),
  )

  app.post(
    '/api/projects/:id/agents/:agentId/budget',
    {
      config: { access: 'admin' },
      schema: {
        tags,
        summary: "Add tokens to an agent's allocation; interrupted work goes on",
        params: agentParams,
        body: budgetInput,
        response: answers(200, agentSchema),
      },
    },
    async (request) => {
      const { id: projectId } = request.params
      const agentId = requireId(request.params.agentId, 'agent')
      await addTokens(pool, log, { projectId, agentId, add: request.body.add, actor: actorOf(request) })
      org.poke(projectId)
      return getAgent(pool, projectId, agentId)
    },
  )

  app.get(
    '/api/projects/:id/agents/:agentId/messages',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'List the messages that an agent sent and received',
        params: agentParams,
        querystring: listQuery,
        response: answers(200, pageOf(agentMessageSchema)),
      },
    },
    async (request) => {
      const agent = await getAgent(pool, request.params.id, requireId(request.params.agentId, 'agent'))
      return listMessages(pool, request.params.id, agent.id, request.query)
    },
  )
}
