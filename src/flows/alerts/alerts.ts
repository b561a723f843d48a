import { changeAudited } from '../../audit/record.ts'
import { MARK_CHANGED } from '../../db/changed-in.ts'
import { type RowOf, tellInstants } from '../../db/instants.ts'
import { listPage, type PageQuery } from '../../db/list-page.ts'
import type { Db } from '../../db/pool.ts'
import type { Alert } from '../../kernel/alert.ts'
import { notFound } from '../../kernel/errors.ts'
import type { Page } from '../../kernel/fields.ts'
import type { Actor } from '../../kernel/principal.ts'

type AlertRow = RowOf<Alert>

const COLUMNS = 'id, flow_run_id, kind, progress, suspected_cause, actions, adjust, created_at, acked_at'

export interface AlertFilter {
  flow_run_id?: string | undefined
  acked?: boolean | undefined
}

export async function listAlerts(
  db: Db,
  projectId: string,
  filter: AlertFilter,
  query: PageQuery,
): Promise<Page<Alert>> {
  const { flow_run_id: flowRunId, acked } = filter
  const ofRun = flowRunId === undefined ? '' : 'and flow_run_id = $2'
  // The condition is spelled out, so that the planner recognises the partial indexes of seen and unseen alerts.
  const seen = acked === undefined ? '' : `and acked_at is ${acked ? 'not' : ''} null`
  return listPage<AlertRow, Alert>(db, {
    sql: `select ${COLUMNS} from flow_alerts where project_id = $1 ${ofRun} ${seen}`,
    values: flowRunId === undefined ? [projectId] : [projectId, flowRunId],
    query,
    toItem: toAlert,
  })
}

/** Marks the alert as seen. An alert that was acked before stays as it is. */
export async function ackAlert(db: Db, projectId: string, alertId: string, actor: Actor): Promise<Alert> {
  const [changed] = await changeAudited<AlertRow>(db, {
    sql: `update flow_alerts set acked_at = muster.now(), ${MARK_CHANGED} where id = $1 and project_id = $2 and acked_at is null
          returning ${COLUMNS}`,
    values: [alertId, projectId],
    note: { action: 'alert.ack', actor, projectId, targetType: 'alert', targetId: alertId },
  })
  return changed ? toAlert(changed) : getAlert(db, projectId, alertId)
}

async function getAlert(db: Db, projectId: string, alertId: string): Promise<Alert> {
  const { rows } = await db.query<AlertRow>(`select ${COLUMNS} from flow_alerts where id = $1 and project_id = $2`, [
    alertId,
    projectId,
  ])
  if (!rows[0]) throw notFound('alert')
  return toAlert(rows[0])
}

const toAlert = (row: AlertRow): Alert => tellInstants(row)
