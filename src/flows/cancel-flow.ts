import { changeAudited } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import { FLOW_CHANNEL, tellProcesses } from '../journal/wake.ts'
import type { Actor } from '../kernel/principal.ts'

/**
 * Cancel is a fact in the database. The owner of the flow run hears of it and begins nothing new; a run without owner
 * is made ready, so that a process ends it. False: the run had ended, was cancelled before, or does not exist.
 */
export async function cancelFlow(db: Db, projectId: string, flowRunId: string, actor: Actor): Promise<boolean> {
  const rows = await changeAudited<{ id: string }>(db, {
    sql: `update flow_runs set cancel_requested_at = muster.now(),
            ready_at = case when owner is null then muster.now() else ready_at end
          where id = $1 and project_id = $2 and completed_at is null and cancel_requested_at is null
          returning id`,
    values: [flowRunId, projectId],
    note: {
      ...{ action: 'flow.cancel', actor, projectId },
      ...{ targetType: 'flow_run', targetId: flowRunId },
    },
  })
  if (rows.length === 0) return false
  await tellProcesses(db, FLOW_CHANNEL, flowRunId)
  return true
}
