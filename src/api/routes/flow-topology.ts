import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import type { EndedRuns } from '../../flows/ended-runs.ts'
import { readFlowRow } from '../../flows/flow-runs.ts'
import { flowTopologySchema, readTopology, topologyField } from '../../flows/topology.ts'
import { askForTopology, standingOfWish } from '../../flows/topology-wish.ts'
import { conflict } from '../../kernel/errors.ts'
import { actorOf } from '../auth.ts'
import { errorSchema } from '../errors.ts'
import type { FlowServices } from '../run-services.ts'
import type { App } from '../server.ts'
import { answers } from '../shapes.ts'
import { flowRunParams } from './flow-runs.ts'

const tags = ['Flow runs']
const path = '/api/projects/:id/flow-runs/:runId/topology'

/** A worker switches its run at once; the wait is this long for runs whose process has just died. */
const WAIT_MS = 5_000
const LOOK_EVERY_MS = 20

export function addFlowTopologyRoutes(
  app: App,
  { pool, flows, ended }: { pool: Pool; flows: FlowServices; ended: EndedRuns },
): void {
  app.get(
    path,
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'Read how work reaches the workers of a flow run, how it went, and what suits such work best',
        params: flowRunParams,
        response: answers(200, flowTopologySchema),
      },
    },
    (request) => readTopology(pool, request.params.id, request.params.runId, ended),
  )

  app.post(
    path,
    {
      config: { access: 'member' },
      schema: {
        tags,
        summary:
          'Switch the topology of a flow run, without losing what waits or runs; 202 where nobody has done it yet',
        params: flowRunParams,
        body: z.strictObject({ topology: topologyField }),
        response: { 200: flowTopologySchema, 202: flowTopologySchema, default: errorSchema },
      },
    },
    async (request, reply) => {
      const run = await readFlowRow(pool, request.params.id, request.params.runId)
      const wish = { topology: request.body.topology, actor: actorOf(request) }
      await inTransaction(pool, (tx) => askForTopology(tx, run.project_id, run.id, wish))
      flows.onReady()
      const standing = await settledWish(pool, run.id)
      if (standing === 'too late') throw conflict('The flow run ended before the topology was switched.')
      reply.code(standing === 'open' ? 202 : 200)
      return readTopology(pool, run.project_id, run.id, ended)
    },
  )
}

async function settledWish(pool: Pool, runId: string): ReturnType<typeof standingOfWish> {
  const giveUpAt = performance.now() + WAIT_MS
  for (;;) {
    const standing = await standingOfWish(pool, runId)
    if (standing !== 'open' || performance.now() > giveUpAt) return standing
    await delay(LOOK_EVERY_MS)
  }
}
