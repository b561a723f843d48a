import { z } from 'zod'
import { readUsage, type UsageSpan } from '../../agents/usage.ts'
import { databaseTime } from '../../db/database-time.ts'
import type { Pool } from '../../db/pool.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import { usageReportSchema } from '../../kernel/usage.ts'
import type { App } from '../http/app.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, listQuery, projectParams } from '../http/shapes.ts'

const openTo = routesOf('Usage')
const DAY_MS = 24 * 60 * 60_000
const USUAL_DAYS = 30
const MOST_DAYS = 366

const dayQuery = z
  .union([z.iso.date(), z.iso.datetime({ offset: true })], { error: 'must be a day, such as 2026-11-16' })
  .transform((text) => new Date(text).toISOString().slice(0, 10))
  .optional()
  .meta({ type: 'string', format: 'date' })
const usageQuery = listQuery.extend({
  from: dayQuery.describe('The first day (UTC); by default the 30th day up to `to`. An instant stands for its day.'),
  to: dayQuery.describe('The last day (UTC), which is included; by default today.'),
})

export function addUsageRoutes(app: App, { pool }: { pool: Pool }): void {
  app.get(
    '/api/projects/:id/usage',
    openTo('viewer', 'Show tokens and cost by day and agent; every model call counts once', {
      params: projectParams,
      querystring: usageQuery,
      response: answers(200, usageReportSchema),
    }),
    async (request) => {
      const { from, to, ...page } = request.query
      return readUsage(pool, request.params.id, spanOf({ from, to }, await databaseTime(pool)), page)
    },
  )
}

function spanOf({ from, to }: { from?: string | undefined; to?: string | undefined }, now: Date): UsageSpan {
  const last = to ?? dayOf(now.getTime())
  const first = from ?? dayOf(Date.parse(last) - (USUAL_DAYS - 1) * DAY_MS)
  const days = (Date.parse(last) - Date.parse(first)) / DAY_MS + 1
  if (days < 1) throw invalidRequest(`from is ${first}, which is after ${to === undefined ? 'today' : 'to'} (${last}).`)
  if (days > MOST_DAYS) throw invalidRequest(`from and to include ${days} days, which must be ${MOST_DAYS} at most.`)
  return { from: first, to: last }
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
