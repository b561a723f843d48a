-- A leaf whose run waits for a process with its tools, or for the tokens of the month, waits like one that waits for a
-- person: the flow run may stand still.
create or replace function muster.run_waits_for_person(r agent_runs) returns boolean language sql immutable as $$
  select r.completed_at is null and (coalesce(r.waits_for, '') = 'tool'
    or (r.status = 'paused' and (coalesce(r.pause_reason, '') in ('human', 'unavailable') or coalesce(r.waits_for, '') = 'month')))
$$;

-- A run that begins to wait for a tool, or stops waiting for one, keeps its status.
drop trigger agent_runs_flows on agent_runs;
create trigger agent_runs_flows after update of status, completed_at, waits_for on agent_runs for each row
  when ((old.status <> new.status and new.changed_in is not distinct from old.changed_in)
    or (((old.completed_at is null) <> (new.completed_at is null) or old.pause_reason is distinct from new.pause_reason
        or (old.status = 'paused') <> (new.status = 'paused')
        or (coalesce(old.waits_for, '') = 'tool') <> (coalesce(new.waits_for, '') = 'tool'))
      and (new.flow_run_id is not null or new.started_flow_run_id is not null or new.ancestors <> '{}')))
  execute function muster.tell_flows_of_run();
