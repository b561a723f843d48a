-- Every append evaluates the conditions of all triggers on agent_runs: four triggers for flows cost 6 % of an append. One
-- trigger with one cheap condition replaces them.
drop trigger agent_runs_flow on agent_runs;
drop trigger agent_runs_stop_flow on agent_runs;
drop trigger agent_runs_below_leaf on agent_runs;
drop trigger agent_runs_wait_for_person on agent_runs;
drop function muster.count_ended_leaf;
drop function muster.stop_flow_of_run;
drop function muster.count_usage_below_leaf;
drop function muster.note_wait_for_person;

create function muster.run_waits_for_person(r agent_runs) returns boolean language sql immutable as $$
  select r.status = 'paused' and coalesce(r.pause_reason, '') = 'human' and r.completed_at is null
$$;

-- The flow run that a run works for, and the flow run that a run has started, follow the run.
create function muster.tell_flows_of_run() returns trigger language plpgsql as $$
declare
  has_ended boolean := new.completed_at is not null and old.completed_at is null;
  has_used boolean := new.input_tokens + new.output_tokens > 0;
  is_below boolean := new.ancestors <> '{}';
  waits boolean := muster.run_waits_for_person(new);
begin
  if has_ended and has_used and is_below then
    perform muster.add_usage(l.flow_run_id, l.task_id, true,
      new.input_tokens, new.output_tokens, new.cost_usd, new.usage_estimated)
    from muster.leaf_of_run(new.id) l where l.flow_run_id is not null;
  end if;
  if has_ended and new.flow_run_id is not null then
    perform muster.leaf_has_ended(new.flow_run_id);
    if has_used then
      perform muster.add_usage(new.flow_run_id, null, false,
        new.input_tokens, new.output_tokens, new.cost_usd, new.usage_estimated);
    end if;
  end if;
  -- A run that ends, however it ends, takes the flow run down that it has started. Runs are locked before flow runs.
  if has_ended and new.started_flow_run_id is not null then
    update flow_runs set cancel_requested_at = muster.now(),
      ready_at = case when owner is null then muster.now() else ready_at end
    where id = new.started_flow_run_id and completed_at is null and cancel_requested_at is null;
    if found then
      perform pg_notify('muster_flow', new.started_flow_run_id::text);
    end if;
  end if;
  if (new.flow_run_id is not null or is_below) and waits <> muster.run_waits_for_person(old) then
    perform muster.note_leaf_wait(l.flow_run_id, l.task_id, new.id, waits)
    from muster.leaf_of_run(new.id) l where l.flow_run_id is not null and l.task_id is not null;
  end if;
  return null;
end $$;

create trigger agent_runs_flows after update of status, completed_at on agent_runs for each row
  when (((old.completed_at is null) <> (new.completed_at is null) or old.pause_reason is distinct from new.pause_reason
      or (old.status = 'paused') <> (new.status = 'paused'))
    and (new.flow_run_id is not null or new.started_flow_run_id is not null or new.ancestors <> '{}'))
  execute function muster.tell_flows_of_run();

-- A trigger before the update of a row locks the row on its own, which writes to the log of the database at every append
-- to a flow run. This trigger comes after it, and changes only flow runs that wait for people. The row may have changed
-- since the update: a flow run below may have begun to wait in the same statement.
drop trigger flow_runs_standstill on flow_runs;
drop trigger flow_runs_wait_above on flow_runs;
drop function muster.note_standstill;
drop function muster.note_wait_above;
create function muster.note_standstill() returns trigger language plpgsql as $$
declare
  now_is flow_runs;
  stands_still boolean;
begin
  select * into now_is from flow_runs where id = new.id;
  stands_still := now_is.completed_at is null and now_is.people_waits > 0
    and now_is.people_waits >= coalesce((now_is.progress->>'running')::int, 0);
  if stands_still is not distinct from (now_is.all_wait_since is not null) then
    return null;
  end if;
  if stands_still then
    update flow_runs set all_wait_since = muster.now() where id = new.id;
  else
    -- The flow run has as much more time as it waited. Its next owner counts anew.
    update flow_runs set all_wait_since = null,
      waited = waited + extract(epoch from coalesce(completed_at, muster.now()) - all_wait_since) * 1000,
      ready_at = case when owner is null and completed_at is null and ready_at is null then muster.now()
        else ready_at end
    where id = new.id;
  end if;
  -- A flow run that waits for people alone is a leaf that waits, where its run is a leaf of another flow run.
  if now_is.parent_run_id is not null then
    perform muster.note_leaf_wait(l.flow_run_id, l.task_id, now_is.parent_run_id, stands_still)
    from muster.leaf_of_run(now_is.parent_run_id) l where l.flow_run_id is not null and l.task_id is not null;
  end if;
  return null;
end $$;
create trigger flow_runs_standstill after update on flow_runs for each row
  when (new.people_waits > 0 or old.people_waits > 0)
  execute function muster.note_standstill();
