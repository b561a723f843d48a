import type { Pool } from '../../db/pool.ts'
import { pageOf } from '../../kernel/fields.ts'
import { scheduleSchema } from '../../kernel/schedule.ts'
import { listSchedules } from '../../triggers/schedules.ts'
import type { App } from '../server.ts'
import { answers, listQuery, projectParams } from '../shapes.ts'

export function addScheduleRoutes(app: App, { pool }: { pool: Pool }): void {
  app.get(
    '/api/projects/:id/schedule',
    {
      config: { access: 'viewer' },
      schema: {
        tags: ['Agents'],
        summary: 'List the enabled scheduled agents and when they run next',
        params: projectParams,
        querystring: listQuery,
        response: answers(200, pageOf(scheduleSchema)),
      },
    },
    (request) => listSchedules(pool, request.params.id, request.query),
  )
}
