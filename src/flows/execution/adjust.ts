import { changeAudited } from '../../audit/record.ts'
import { MARK_CHANGED } from '../../db/changed-in.ts'
import type { Db } from '../../db/pool.ts'
import { FLOW_CHANNEL, tellProcesses } from '../../journal/wake.ts'
import { MOST_LEAVES } from '../../kernel/flow.ts'
import type { Actor } from '../../kernel/principal.ts'

export interface Adjustment {
  /** Milliseconds from the start of the flow run. */
  timeout?: number | undefined
  /** The most leaves under way at once: this many, or this many more than now. */
  workers?: number | { add: number; usual: number } | undefined
}

/** Every change of the time or the workers sets these columns of the flow run, and tells of them. */
export const ADJUSTED = `adjustments = adjustments + 1, last_seq = last_seq + 1, ${MARK_CHANGED},
  ready_at = case when owner is null then least(ready_at, muster.now()) else ready_at end`
export const TOLD = `told as (
  insert into flow_events (run_id, seq, id, kind, data)
  select id, last_seq, gen_random_uuid(), 'flow.adjusted', jsonb_build_object('timeout', timeout, 'workers', workers)
  from change)`

/**
 * Changes the timeout and the workers of a flow run. The change and its event are one commit; the owner hears of it,
 * and a run without an owner is made ready, so that a process wakes it by the new time. False: the run has ended, or
 * does not exist.
 */
export async function adjustFlow(
  db: Db,
  { projectId, flowRunId, actor }: { projectId: string; flowRunId: string; actor: Actor },
  { timeout, workers }: Adjustment,
): Promise<boolean> {
  const { add = 0, usual = 0 } = typeof workers === 'object' ? workers : {}
  const set = typeof workers === 'number' ? workers : null
  const rows = await changeAudited<{ id: string }>(db, {
    sql: `update flow_runs set timeout = coalesce($3::int, timeout),
            workers = case when $4::int is not null then $4::int
              when $5::int > 0 then least(coalesce(workers, $6::int) + $5::int, ${MOST_LEAVES}) else workers end,
            ${ADJUSTED}
          where id = $1 and project_id = $2 and completed_at is null returning id, last_seq, timeout, workers`,
    also: TOLD,
    values: [flowRunId, projectId, timeout ?? null, set, add, usual],
    note: {
      action: add > 0 ? 'flow.add_workers' : 'flow.adjust',
      actor,
      projectId,
      targetType: 'flow_run',
      targetId: flowRunId,
      details:
        add > 0
          ? { add }
          : { ...(timeout === undefined ? {} : { timeout }), ...(set === null ? {} : { workers: set }) },
    },
  })
  if (rows.length === 0) return false
  await tellProcesses(db, FLOW_CHANNEL, flowRunId)
  return true
}
