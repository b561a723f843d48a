-- The run of a leaf that has paused because the outcome of a call is unknown waits for a person, although it has ended: the
-- flow run may stand still. `cancel_requested_at` of such a run says that nobody waits for it any more: another run
-- continues it, or the flow run has stopped the leaf.
create or replace function muster.run_waits_for_person(r agent_runs) returns boolean language sql immutable as $$
  select case when r.completed_at is null
    then coalesce(r.waits_for, '') = 'tool'
      or (r.status = 'paused' and (coalesce(r.pause_reason, '') in ('human', 'unavailable') or coalesce(r.waits_for, '') = 'month'))
    else r.flow_run_id is not null and r.status = 'paused' and coalesce(r.pause_reason, '') = 'outcome_unknown'
      and r.cancel_requested_at is null
  end
$$;

-- No run changes while the runs that are undecided now are noted.
drop trigger agent_runs_flows on agent_runs;

update agent_runs u set cancel_requested_at = muster.now()
from projects p cross join lateral (
  select r.id from agent_runs r where r.project_id = p.id and r.pause_reason = 'outcome_unknown'
    and r.flow_run_id is not null and r.completed_at is not null and r.cancel_requested_at is null
    and (exists (select from agent_runs n where n.base_run_id = r.id and n.resumed_from = r.id)
      or exists (select from flow_runs f where f.id = r.flow_run_id and f.completed_at is not null))) d
where u.id = d.id;

select muster.note_leaf_wait(r.flow_run_id, r.trigger->>'task_id', r.id, true)
from projects p join agent_runs r on r.project_id = p.id and r.pause_reason = 'outcome_unknown'
where r.trigger->>'task_id' is not null and muster.run_waits_for_person(r);

-- The run of an entry of the processing log that waits for a tool does not work on it: the next migration notes that.
create trigger agent_runs_flows after update of status, completed_at, waits_for, cancel_requested_at on agent_runs for each row
  when ((old.status <> new.status and new.changed_in is not distinct from old.changed_in)
    or (((old.completed_at is null) <> (new.completed_at is null) or old.pause_reason is distinct from new.pause_reason
        or (old.status = 'paused') <> (new.status = 'paused')
        or (coalesce(old.waits_for, '') = 'tool') <> (coalesce(new.waits_for, '') = 'tool')
        or (new.completed_at is not null and (old.cancel_requested_at is null) <> (new.cancel_requested_at is null)))
      and (new.flow_run_id is not null or new.started_flow_run_id is not null or new.ancestors <> '{}'
        or (new.entry_id is not null and (coalesce(old.waits_for, '') = 'tool') <> (coalesce(new.waits_for, '') = 'tool')))))
  execute function muster.tell_flows_of_run();

-- A continuation is made under the lock of the run.
create function muster.end_wait_for_decision() returns trigger language plpgsql as $$
begin
  update agent_runs set cancel_requested_at = muster.now(), changed_in = pg_current_xact_id()
  where id = new.resumed_from and flow_run_id is not null and status = 'paused' and pause_reason = 'outcome_unknown'
    and completed_at is not null and cancel_requested_at is null;
  return null;
end $$;
create trigger agent_runs_end_wait after insert on agent_runs for each row
  when (new.flow_run_id is not null and new.resumed_from is not null)
  execute function muster.end_wait_for_decision();
