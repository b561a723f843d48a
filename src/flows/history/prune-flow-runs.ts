import { type Position, removeOldest } from '../../db/in-batches.ts'
import type { Pool } from '../../db/pool.ts'
import { asManyAsFit } from '../../kernel/as-many-as-fit.ts'
import { KEPT, removeQueued, treesOf } from '../../runs/prune-runs.ts'

const FLOW_RUNS_AT_ONCE = 50
const EVENTS_AT_ONCE = 20_000

interface Found extends Position {
  /** The most events and answers that are removed with the flow run. */
  below: number
  stays: boolean
}

const LEAVES =
  'select f.id, r.id from ended f cross join lateral (select id from agent_runs where flow_run_id = f.id) r'

/**
 * Removes flow runs that ended longer ago than their project keeps runs, with their events, alerts, handouts, answers
 * to items, and the runs of their leaves. A flow run stays while one of those stays, by the rules for trees of runs, and
 * while the run that started it stays. Returns the number of removed flow runs.
 */
export async function pruneFlowRuns(
  pool: Pool,
  { projectId, days }: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> {
  const total = await removeOldest(pool, signal, async (tx, after) => {
    const { rows: found } = await tx.query<Found>(
      `with recursive ended as materialized (
         select id, completed_at, last_seq + asked_calls as below from flow_runs
         where project_id = $1 and completed_at < muster.now() - $2 * interval '1 day'
           and not exists (select from agent_runs p where p.id = flow_runs.parent_run_id)
           and not exists (select from flow_runs n where n.resumed_from = flow_runs.id and n.completed_at is null)
           and (completed_at, id) > ($3::timestamptz, $4::uuid)
         order by completed_at, id limit ${FLOW_RUNS_AT_ONCE} for update skip locked
       ), ${treesOf(LEAVES)}, ${KEPT}
       select id, completed_at::text as at, below, id in (select root from kept) as stays
       from ended order by completed_at, id`,
      [projectId, days, after.at, after.id],
    )
    const batch = asManyAsFit(found, (flow) => flow.below, EVENTS_AT_ONCE)
    const { rows } = await tx.query<{ count: number }>(
      `with gone as (delete from flow_runs where id = any($1::uuid[]) returning id), leaves as (
         insert into run_removals (run_id)
         select r.id from gone cross join lateral (select id from agent_runs where flow_run_id = gone.id) r
         on conflict do nothing
       )
       select count(*)::int as count from gone`,
      [batch.filter((flow) => !flow.stays).map((flow) => flow.id)],
    )
    const isMore = batch.length < found.length || found.length === FLOW_RUNS_AT_ONCE
    return { last: batch.at(-1), removed: rows[0]?.count ?? 0, isMore }
  })
  await removeQueued(pool, signal)
  return total
}
