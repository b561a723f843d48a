import { MARK_CHANGED } from '../../db/changed-in.ts'
import type { Db } from '../../db/pool.ts'

/**
 * Wakes the run that waits for a flow run, in the transaction that ends the flow run. The run has used the tokens of the
 * flow run. The run's row is locked before that of the flow run, as by everybody who changes both. Usage that comes
 * later finds the flow run ended, and is added to the run (migration 0052). A run that waits for tokens waits no longer;
 * its task was handed back meanwhile, and takes the outcome of the run (org/settle.ts).
 */
export async function wakeParent(tx: Db, parentRunId: string, flowRunId: string): Promise<void> {
  const { rows } = await tx.query<{ has_ended: boolean }>(
    `with mine as (
       select id from agent_runs where id = $1 for no key update
     ), f as (
       select input_tokens, output_tokens, cost_usd, usage_estimated from flow_runs
       where id = $2 and exists (select from mine) for no key update
     )
     update agent_runs r set input_tokens = f.input_tokens, output_tokens = f.output_tokens, cost_usd = f.cost_usd,
       usage_estimated = f.usage_estimated,
       open_children = case when r.completed_at is null then 0 else r.open_children end,
       ready_at = case when r.completed_at is null and r.owner is null and r.waits_for in ('children', 'allocation')
         then muster.now() else r.ready_at end,
       waits_for = case when r.completed_at is null then nullif(r.waits_for, 'allocation') else r.waits_for end,
       is_task_open = r.is_task_open or (r.completed_at is null and coalesce(r.waits_for = 'allocation', false)),
       ${MARK_CHANGED}
     from f where r.id = $1
     returning r.completed_at is not null as has_ended`,
    [parentRunId, flowRunId],
  )
  if (rows[0]?.has_ended) await addLateUsage(tx, parentRunId)
}

/** A run that was cancelled has ended before its flow run, so the usage of the run is added to the flow above now. */
async function addLateUsage(tx: Db, runId: string): Promise<void> {
  await tx.query(
    `select muster.add_usage(l.flow_run_id, l.task_id, l.is_below, r.input_tokens, r.output_tokens, r.cost_usd,
       r.usage_estimated)
     from agent_runs r cross join muster.leaf_of_run(r.id) l
     where r.id = $1 and r.input_tokens + r.output_tokens > 0 and l.flow_run_id is not null`,
    [runId],
  )
}
