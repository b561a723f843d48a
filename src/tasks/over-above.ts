import type { Db } from '../db/pool.ts'

/**
 * True if work above the run was called off: its flow run, a run above it, or a flow run above those, at every level.
 * The cancel goes down in several commits, and nobody may answer for work that it has not reached yet. A run that began
 * after the end of its flow run was asked for by a person, for itself alone. A run above that has ended by itself is not
 * a reason: the run that resumes it takes over its sub-runs.
 */
export async function isOverAbove(db: Db, runId: string): Promise<boolean> {
  const { rows } = await db.query<{ is_over: boolean }>(
    `with recursive level (run_id, ancestors, top_id) as (
       select id, ancestors, coalesce(ancestors[1], id) from agent_runs where id = $1
       union all
       select p.id, p.ancestors, coalesce(p.ancestors[1], p.id)
       from level l join agent_runs top on top.id = l.top_id join flow_runs f on f.id = top.flow_run_id
       join agent_runs p on p.id = f.parent_run_id
     )
     select exists (
       select from level l join agent_runs r on r.id = any(l.ancestors || l.run_id)
       where r.id <> $1 and r.cancel_requested_at is not null
     ) or exists (
       select from level l join agent_runs top on top.id = l.top_id join flow_runs f on f.id = top.flow_run_id
       where coalesce(f.cancel_requested_at, f.completed_at) > top.created_at
     ) as is_over`,
    [runId],
  )
  return rows[0]?.is_over ?? false
}
