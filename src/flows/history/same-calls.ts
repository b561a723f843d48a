// The calls that are the same as one that a person decides about, in all runs of the same work. A run that begins anew
// does not know the calls of the runs before it, and neither do those that it waits for.
import type { Db } from '../../db/pool.ts'
import { callsOfRuns, type FoundCall } from '../../journal/finished-calls.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import type { RunEffects } from '../../kernel/run.ts'
import { toEffects } from '../../runs/effects.ts'

/** The calls that took effect, or may have, with the tool and the arguments of that call of the run; oldest first. */
export async function listSameCalls(db: Db, runId: string, callId: string): Promise<RunEffects> {
  const asked = await db.query<{ name: string; args: unknown }>(ANNOUNCED, [runId, callId])
  const [announced] = asked.rows
  if (!announced) return toEffects([])
  const { rows: runs } = await db.query<{ id: string }>(RUNS_OF_WORK, [runId])
  const calls = await callsOfRuns(
    db,
    runs.map(({ id }) => id),
  )
  const isSame = ({ tool, args, run_id, call_id }: FoundCall): boolean =>
    tool === announced.name &&
    canonicalJson(args) === canonicalJson(announced.args) &&
    (run_id !== runId || call_id !== callId)
  return toEffects(calls, isSame)
}

/** The newest announcement of the call, in the run or in one that it continues. */
const ANNOUNCED = `
  with recursive history (id, base_run_id) as (
    select id, base_run_id from agent_runs where id = $1
    union select r.id, r.base_run_id from history h join agent_runs r on r.id = h.base_run_id
  )
  select e.data->>'name' as name, e.data->'args' as args
  from history h join run_events e on e.run_id = h.id
  where e.kind = 'tool.started' and e.origin_seq is null and e.data->>'call_id' = $2
  order by e.run_id = $1 desc, e.at desc, e.seq desc limit 1`

/**
 * The run; the attempts at the task that it, or a run above it, belongs to; the runs of its leaf in all flow runs that
 * were resumed; the run before a fresh start that people decided about; and the original of a fork.
 */
const RUNS_OF_WORK = `
  with recursive above (id, task_id, flow_run_id, key_scope, forked_from, above_id) as (
    select r.id, r.task_id, r.flow_run_id, r.key_scope, r.forked_from, coalesce(r.parent_run_id, f.parent_run_id)
    from agent_runs r left join flow_runs f on f.id = r.flow_run_id where r.id = $1
    union
    select r.id, r.task_id, r.flow_run_id, r.key_scope, r.forked_from, coalesce(r.parent_run_id, f.parent_run_id)
    from above a join agent_runs r on r.id = a.above_id left join flow_runs f on f.id = r.flow_run_id
  ), resumed (id, resumed_from, key_scope) as (
    select f.id, f.resumed_from, a.key_scope from above a join flow_runs f on f.id = a.flow_run_id
    union
    select f.id, f.resumed_from, w.key_scope from resumed w join flow_runs f on f.id = w.resumed_from
  )
  select $1::uuid as id
  union select forked_from from above where forked_from is not null
  union select r.id from above a join agent_runs r on r.task_id = a.task_id
  union select r.id from resumed f join agent_runs r on r.flow_run_id = f.id and r.key_scope = f.key_scope
  union select (t.metadata->>'run_id')::uuid from above a join tasks t on t.run_id = a.id
    where t.kind = 'escalation' and t.metadata->>'kind' = 'begin_anew'`
