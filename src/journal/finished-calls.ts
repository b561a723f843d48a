// The calls with an effect that a piece of work has made so far, in all its runs: attempts, continuations, sub-runs, and
// the runs of the flows that they started.
import type { Db } from '../db/pool.ts'

export interface MadeCall {
  run_id: string
  step: number
  call_id: string
  tool: string
  args: unknown
  /** Null for a call whose outcome is unknown. */
  result: unknown
  key: string
  effect: 'keyed' | 'unsafe' | 'run'
  /** False for a call that has no result: it may or may not have taken effect. */
  is_finished: boolean
  at: Date
}

/** A list for people or for a model holds this many calls at most. */
const MAX_CALLS = 200

/** These change nothing by themselves; the effects of a sub-run are its own calls. */
const NO_EFFECT = `('spawn_agent', 'ask_human', 'finish_loop', 'task_list')`

/** SQL: the runs of `first` with the runs that they continue, their sub-runs and the runs of their flows. */
const treeOf = (first: string): string => `
  tree (id, scope, base_run_id, flow_run_id) as (
    select id, coalesce(key_scope, id::text), case when resumed_from is not null then base_run_id end, started_flow_run_id
    from agent_runs where ${first}
    union
    select r.id, coalesce(r.key_scope, r.id::text), case when r.resumed_from is not null then r.base_run_id end,
      r.started_flow_run_id
    from tree t cross join lateral (
      select * from agent_runs where id = t.base_run_id
      union all select * from agent_runs where parent_run_id = t.id
      union all select * from agent_runs where flow_run_id = t.flow_run_id
    ) r
  )`

/**
 * A result may stand in a later run than its announcement: a person's word about the call, or a continuation that made
 * the call again. A call that was refused, that nobody approved, or that a person knows was not made, took no effect.
 */
const callsSql = (first: string): string => `
  with recursive ${treeOf(first)}
  select * from (
    select s.run_id, (s.data->>'step')::int as step, s.data->>'call_id' as call_id, s.data->>'name' as tool,
      s.data->'args' as args, s.data->>'key' as key, s.data->>'effect' as effect, c.data->'result' as result,
      c.data is not null as is_finished, coalesce(c.at, s.at) as at
    from tree t join run_events s on s.run_id = t.id and s.kind = 'tool.started' and s.origin_seq is null
    left join lateral (
      select e.data, e.at from tree o join run_events e on e.run_id = o.id
      where o.scope = t.scope and e.kind = 'tool.completed' and e.origin_seq is null
        and e.data->>'call_id' = s.data->>'call_id' and e.data->'step' = s.data->'step'
        and (e.run_id = s.run_id or o.base_run_id is not null)
      order by (e.run_id = s.run_id) desc, e.at limit 1
    ) c on true
    where s.data->>'effect' <> 'readonly' and not s.data ? 'run_id' and s.data->>'name' not in ${NO_EFFECT}
      and c.data->>'blocked' is null
      and not (c.data ? 'settled_by' and coalesce((c.data->>'is_error')::boolean, false))
      and (not s.data ? 'approval' or exists (
        select from tree o join run_events d on d.run_id = o.id
        where o.scope = t.scope and d.kind = 'tool.decided' and d.origin_seq is null
          and d.data->>'call_id' = s.data->>'call_id' and d.data->'step' = s.data->'step'
          and d.data->>'decision' = 'approved' and (d.run_id = s.run_id or o.base_run_id is not null)))
    order by coalesce(c.at, s.at) desc limit ${MAX_CALLS}
  ) newest order by at, step`

const OF_RUN = callsSql('id = $1')
const OF_TASK = callsSql('task_id = $1')

/** The calls of the run, of the runs it continues, and of their sub-runs; oldest first, the newest of many. */
export async function callsOfRun(db: Db, runId: string): Promise<MadeCall[]> {
  const { rows } = await db.query<MadeCall>(OF_RUN, [runId])
  return rows
}

/** The calls of all attempts at the task. */
export async function callsOfTask(db: Db, taskId: string): Promise<MadeCall[]> {
  const { rows } = await db.query<MadeCall>(OF_TASK, [taskId])
  return rows
}

/** An unsafe call that was made, or may have been made: beginning anew could repeat it unseen. */
export const hasUnsafe = (calls: readonly MadeCall[]): boolean => calls.some((call) => call.effect === 'unsafe')
