import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { askForTopology, statusOfWish } from '../../flows/execution/topology-wish.ts'
import type { EndedRuns } from '../../flows/history/ended-runs.ts'
import { readFlowRow } from '../../flows/history/flow-runs.ts'
import { flowTopologySchema, readTopology, topologyField } from '../../flows/history/topology.ts'
import { conflict } from '../../kernel/errors.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import { errorSchema } from '../http/errors.ts'
import { routesOf } from '../http/routes-of.ts'
import type { FlowServices } from '../http/run-services.ts'
import { answers } from '../http/shapes.ts'
import { flowRunParams } from './flow-runs.ts'

export const topologyInput = z.strictObject({ topology: topologyField })
const openTo = routesOf('Flow runs')
const path = '/api/projects/:id/flow-runs/:runId/topology'

/** A worker switches its run at once. The wait is this long for runs whose process has just died. */
const WAIT_MS = 5_000
const LOOK_EVERY_MS = 20

export function addFlowTopologyRoutes(
  app: App,
  { pool, flows, ended }: { pool: Pool; flows: FlowServices; ended: EndedRuns },
): void {
  app.get(
    path,
    openTo('viewer', 'Read the topology of a flow run, its measurements, and the best topology for such work', {
      params: flowRunParams,
      response: answers(200, flowTopologySchema),
    }),
    (request) => readTopology(pool, request.params.id, request.params.runId, flows.patterns, ended),
  )

  app.post(
    path,
    openTo('member', 'Switch the topology of a flow run without losing a task; 202 if no worker has switched it yet', {
      params: flowRunParams,
      body: topologyInput,
      response: { 200: flowTopologySchema, 202: flowTopologySchema, default: errorSchema },
    }),
    async (request, reply) => {
      const run = await readFlowRow(pool, request.params.id, request.params.runId)
      const wish = { topology: request.body.topology, actor: actorOf(request), patterns: flows.patterns }
      await inTransaction(pool, (tx) => askForTopology(tx, run.project_id, run.id, wish))
      flows.onReady()
      const status = await settledWish(pool, run.id)
      if (status === 'too late') throw conflict('The flow run ended before the topology was switched.')
      reply.code(status === 'open' ? 202 : 200)
      return readTopology(pool, run.project_id, run.id, flows.patterns, ended)
    },
  )
}

async function settledWish(pool: Pool, runId: string): ReturnType<typeof statusOfWish> {
  const giveUpAt = performance.now() + WAIT_MS
  for (;;) {
    const status = await statusOfWish(pool, runId)
    if (status !== 'open' || performance.now() > giveUpAt) return status
    await delay(LOOK_EVERY_MS)
  }
}
