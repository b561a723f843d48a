// The calls with an effect that a piece of work has made so far, in all its runs: attempts, continuations, sub-runs, and
// the runs and functions of the flows that they started.
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

export interface FoundCall extends MadeCall {
  /** The number of calls that were found, of which the list may hold fewer. */
  found: number
}

/** A list holds this many calls at most. Unsafe calls come first, because people decide about them. */
export const MAX_CALLS = 1_000

/** These change nothing by themselves; the effects of a sub-run are its own calls. */
const NO_EFFECT = `('spawn_agent', 'ask_human', 'finish_loop', 'task_list')`

/** SQL: the runs of `first` with the runs that they continue, their sub-runs and the runs of their flows. */
const treeOf = (first: string): string => `
  tree (id, base_run_id, flow_run_id) as (
    select id, case when resumed_from is not null then base_run_id end, started_flow_run_id
    from agent_runs where ${first}
    union
    select r.id, case when r.resumed_from is not null then r.base_run_id end, r.started_flow_run_id
    from tree t cross join lateral (
      select * from agent_runs where id = t.base_run_id
      union all select * from agent_runs where parent_run_id = t.id
      union all select * from agent_runs where flow_run_id = t.flow_run_id
    ) r
  )`

/** A longer result of a function is left out. */
const MAX_RESULT_BYTES = 262_144
const LEFT_OUT = `'{"truncated": true}'::jsonb`

/**
 * SQL: the finished calls of functions in the flow runs of `tree` and in those that they resume. A leaf that was taken
 * over names no calls, so each call is named once. Of each flow run the newest leaves are read. Functions are keyed.
 */
const OF_FUNCTIONS = `
  started (id, run_id, hops) as (
    select flow_run_id, id, 0 from tree where flow_run_id is not null
    union select f.resumed_from, s.run_id, s.hops + 1 from started s join flow_runs f on f.id = s.id
    where f.resumed_from is not null
  ), leaves as (
    select s.run_id, e.data, e.data->'called' as called, e.at
    from (select distinct on (id) id, run_id from started order by id, hops) s cross join lateral (
      select data, at from flow_events where run_id = s.id and kind = 'task.completed' and data ? 'called'
      order by seq desc limit ${MAX_CALLS}
    ) e
  ), functions as (
    select run_id, 0 as step, data->>'task_id' || case when called ? 'is_list' then ' ' || place else '' end as call_id,
      called->>'function' as tool, coalesce(called->'args'->(place - 1), ${LEFT_OUT}) as args, key, 'keyed' as effect,
      case when pg_column_size(result) > ${MAX_RESULT_BYTES} then ${LEFT_OUT} else result end as result,
      true as is_finished, at
    from leaves cross join lateral (
      select key, place::int, case when called ? 'is_list' then data->'result'->(place::int - 1) else data->'result' end as result
      from jsonb_array_elements_text(called->'keys') with ordinality as k (key, place)
    ) c
  )`

/**
 * A result may stand in a later run of the chain than its announcement: a person's word about the call, or a continuation
 * that made the call again. These calls took no effect: one that was refused, one that waits for approval or was
 * rejected, one that nobody had begun when its chain ended, and one that a person knows was not made.
 */
const callsSql = (first: string): string => `
  with recursive ${treeOf(first)},
  chains (id, root) as (
    select id, id from tree where base_run_id is null
    union select t.id, c.root from chains c join tree t on t.base_run_id = c.id
  ), happened as materialized (
    select c.root, e.run_id, e.kind, e.data, e.data->>'call_id' as call_id, (e.data->>'step')::int as step, e.at, e.seq
    from chains c join run_events e on e.run_id = c.id
    where e.origin_seq is null and e.kind in ('tool.started', 'tool.decided', 'tool.completed', 'run.started',
      'run.continued', 'run.recovered', 'run.paused', 'run.failed', 'run.cancelled')
  ), completed as (
    select distinct on (root, call_id, step) * from happened where kind = 'tool.completed' order by root, call_id, step, at
  ), approved as (
    select root, call_id, step, max(at) as at from happened
    where kind = 'tool.decided' and data->>'decision' = 'approved' group by 1, 2, 3
  ), last as (
    select distinct on (root) root, data->'not_begun' as not_begun from happened where kind like 'run.%'
    order by root, at desc, seq desc
  ), ${OF_FUNCTIONS}, calls as (
    select s.run_id, s.step, s.call_id, s.data->>'name' as tool, s.data->'args' as args, s.data->>'key' as key,
      s.data->>'effect' as effect, case when not c.data ? 'is_unanswered' then c.data->'result' end as result,
      coalesce(not c.data ? 'is_unanswered', false) as is_finished,
      coalesce(c.at, a.at, s.at) as at
    from happened s left join completed c using (root, call_id, step) left join approved a using (root, call_id, step)
      left join last l using (root)
    where s.kind = 'tool.started' and s.data->>'effect' <> 'readonly' and not s.data ? 'run_id'
      and s.data->>'name' not in ${NO_EFFECT}
      and (c.data->>'blocked' is null or c.data ?| array['is_unanswered', 'is_withheld'])
      and not coalesce(c.data ? 'settled_by' and (c.data->>'is_error')::boolean, false)
      and (not s.data ? 'approval' or a.root is not null)
      and (c.data is not null or not coalesce(l.not_begun ? s.call_id, false))
    union all select * from functions
  )
  select * from (
    select *, (count(*) over ())::int as found from calls order by effect = 'unsafe' desc, at desc limit ${MAX_CALLS}
  ) newest order by at, step`

const OF_RUN = callsSql('id = $1')
const OF_TASKS = callsSql('task_id = any($1::uuid[])')
const OF_RUNS = callsSql('id = any($1::uuid[])')

/** The calls of the run, of the runs it continues, and of their sub-runs; oldest first, the newest of many. */
export async function callsOfRun(db: Db, runId: string): Promise<FoundCall[]> {
  const { rows } = await db.query<FoundCall>(OF_RUN, [runId])
  return rows
}

/** The same of several runs together. */
export async function callsOfRuns(db: Db, runIds: readonly string[]): Promise<FoundCall[]> {
  const { rows } = await db.query<FoundCall>(OF_RUNS, [runIds])
  return rows
}

/** The calls of all attempts at these tasks. */
export async function callsOfTasks(db: Db, taskIds: readonly string[]): Promise<MadeCall[]> {
  const { rows } = await db.query<MadeCall>(OF_TASKS, [taskIds])
  return rows
}

/** An unsafe call that was made, or may have been made: beginning anew could repeat it unseen. */
export const hasUnsafe = (calls: readonly MadeCall[]): boolean => calls.some((call) => call.effect === 'unsafe')
