import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { ackAlert, listAlerts } from '../../flows/alerts/alerts.ts'
import { alertSchema } from '../../kernel/alert.ts'
import { idField, pageOf } from '../../kernel/fields.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, emptyBody, listQuery, pathId, projectParams, requireId } from '../http/shapes.ts'

const openTo = routesOf('Alerts')
const alertParams = z.strictObject({ id: pathId, alertId: pathId })

export function addAlertRoutes(app: App, { pool }: { pool: Pool }): void {
  app.get(
    '/api/projects/:id/alerts',
    openTo('viewer', 'List the alerts about flow runs, newest first', {
      params: projectParams,
      querystring: listQuery.extend({ flow_run_id: idField.optional(), acked: z.enum(['true', 'false']).optional() }),
      response: answers(200, pageOf(alertSchema)),
    }),
    (request) => {
      const { limit, cursor, flow_run_id, acked } = request.query
      const filter = { flow_run_id, acked: acked === undefined ? undefined : acked === 'true' }
      return listAlerts(pool, request.params.id, filter, { limit, cursor })
    },
  )

  app.post(
    '/api/projects/:id/alerts/:alertId/ack',
    openTo('member', 'Mark an alert as seen; an alert that was seen before stays as it is', {
      params: alertParams,
      body: emptyBody,
      response: answers(200, alertSchema),
    }),
    (request) => ackAlert(pool, request.params.id, requireId(request.params.alertId, 'alert'), actorOf(request)),
  )
}
