import type { Pool } from '../../db/pool.ts'
import type { Decide } from '../../flows/recommend/recommend-with-model.ts'
import { layOutWithModel } from '../../genui/layout-with-model.ts'
import { type LayoutContext, layoutRequest, layoutSchema } from '../../kernel/genui.ts'
import type { Log } from '../../kernel/log.ts'
import type { App } from '../http/app.ts'
import { projectOf } from '../http/auth.ts'
import type { TrackRequest } from '../http/long-requests.ts'
import { answers } from '../http/shapes.ts'
import { gatherFacts, readsMuch } from './layout-facts.ts'

export interface GenuiRoutes {
  pool: Pool
  log: Log
  track: TrackRequest
  decide: Decide
}

export function addGenuiRoutes(app: App, { pool, log, track, decide }: GenuiRoutes): void {
  app.post(
    '/v1/genui/layout',
    {
      config: {
        access: 'member',
        isHeavy: ({ body }) => readsMuch((body as { context: LayoutContext }).context), // the schema has checked it
      },
      schema: {
        tags: ['Supervisor'],
        summary: 'Lay out a page for a scenario',
        description:
          'The components of a page, as data. The project is the key’s; the instance admin and signed-in people name it in x-project-id. If the project’s default_model is a real model, that model arranges the page.',
        body: layoutRequest,
        response: answers(200, layoutSchema),
      },
    },
    async (request, reply) => {
      const projectId = projectOf(request)
      const { context } = request.body
      const facts = await gatherFacts(pool, projectId, context)
      return layOutWithModel(
        {
          signal: track(reply),
          ask: (question, signal) => decide(projectId, question, signal),
          onUnused: (reason) =>
            log.info(
              { project_id: projectId, scenario: facts.scenario, reason },
              'the layout of the model was not used',
            ),
        },
        facts,
      )
    },
  )
}
