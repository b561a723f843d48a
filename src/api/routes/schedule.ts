import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { pageOf } from '../../kernel/fields.ts'
import { schedulePreviewSchema, scheduleSchema } from '../../kernel/schedule.ts'
import { listSchedules } from '../../triggers/schedules.ts'
import { previewSchedule } from '../../triggers/timing.ts'
import type { App } from '../http/app.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, listQuery, projectParams, wholeNumber } from '../http/shapes.ts'

const openTo = routesOf('Agents')
const MOST_TIMES = 50
const previewQuery = z.strictObject({
  cron_schedule: z.string().max(200).describe('Five fields, such as 0 9 * * 1-5.'),
  timezone: z.string().max(100).default('UTC'),
  count: wholeNumber({ most: MOST_TIMES }).default(5).meta({ type: 'integer', minimum: 1, maximum: MOST_TIMES }),
})

export function addScheduleRoutes(app: App, { pool }: { pool: Pool }): void {
  app.get(
    '/api/projects/:id/schedule',
    openTo('viewer', 'List the enabled scheduled agents with the time of their next run', {
      params: projectParams,
      querystring: listQuery,
      response: answers(200, pageOf(scheduleSchema)),
    }),
    (request) => listSchedules(pool, request.params.id, request.query),
  )

  app.get(
    '/api/projects/:id/schedule/preview',
    openTo('viewer', 'Show the next times of a schedule; one that is never due is refused, as for an agent', {
      params: projectParams,
      querystring: previewQuery,
      response: answers(200, schedulePreviewSchema),
    }),
    (request) => previewSchedule(pool, request.query),
  )
}
