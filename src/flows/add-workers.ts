import { changeAudited } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import { FLOW_CHANNEL, tellProcesses } from '../journal/wake.ts'
import { MOST_LEAVES } from '../kernel/flow.ts'
import type { Actor } from '../kernel/principal.ts'

export interface MoreWorkers {
  add: number
  /** The worker count of a flow run that was started without one. */
  usual: number
  actor: Actor
}

/** From now on more leaves of this flow run may be under way at once. False: the run has ended, or does not exist. */
export async function addWorkers(
  db: Db,
  projectId: string,
  flowRunId: string,
  { add, usual, actor }: MoreWorkers,
): Promise<boolean> {
  const rows = await changeAudited<{ id: string }>(db, {
    sql: `update flow_runs set workers = least(coalesce(workers, $3::int) + $4::int, $5::int),
            ready_at = case when owner is null then least(ready_at, muster.now()) else ready_at end
          where id = $1 and project_id = $2 and completed_at is null returning id`,
    values: [flowRunId, projectId, usual, add, MOST_LEAVES],
    note: {
      ...{ action: 'flow.add_workers', actor, projectId },
      ...{ targetType: 'flow_run', targetId: flowRunId, details: { add } },
    },
  })
  if (rows.length === 0) return false
  await tellProcesses(db, FLOW_CHANNEL, flowRunId)
  return true
}
