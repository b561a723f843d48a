-- An agent may be a flow: a run of it starts a flow run, and ends as that ends.
alter table agents add column flow text;
alter table agents drop constraint agents_flow_type_check;
alter table agents add constraint agents_flow_type_check
  check (flow_type in ('single', 'sequential', 'loop', 'flow')) not valid;
-- Agents that name a flow: it cannot be deleted meanwhile.
create index agents_of_flow on agents (project_id, flow) where flow is not null and deleted_at is null;

-- The flow run that a run of such an agent has started.
alter table agent_runs add column started_flow_run_id uuid;
-- The agents above whose allocations the run's calls count for, too: those that are the flow which the run is a leaf of.
alter table agent_runs add column payers uuid[] not null default '{}';

-- The run that waits for the flow run, and the bounds that it sets to the runs of the leaves:
-- {depth, chain_depth, rights, payers, eval_id?}.
alter table flow_runs add column parent_run_id uuid;
alter table flow_runs add column within jsonb;

-- A run that ends, however it ends, takes the flow run down that it has started. Runs are locked before flow runs.
create function muster.stop_flow_of_run() returns trigger language plpgsql as $$
begin
  update flow_runs set cancel_requested_at = muster.now(),
    ready_at = case when owner is null then muster.now() else ready_at end
  where id = new.started_flow_run_id and completed_at is null and cancel_requested_at is null;
  if found then
    perform pg_notify('muster_flow', new.started_flow_run_id::text);
  end if;
  return null;
end $$;
create trigger agent_runs_stop_flow after update of completed_at on agent_runs for each row
  when (new.started_flow_run_id is not null and new.completed_at is not null and old.completed_at is null)
  execute function muster.stop_flow_of_run();
