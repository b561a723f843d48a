-- Retention finds what has ended by age, whatever else a table holds.

-- Roots of trees of runs: those below them go with them.
create index agent_runs_ended on agent_runs (project_id, completed_at, id)
  where completed_at is not null and parent_run_id is null and base_run_id is null and flow_run_id is null;
create index flow_runs_ended on flow_runs (project_id, completed_at, id) where completed_at is not null;
create index tasks_resolved on tasks (project_id, completed_at, id) where completed_at is not null;
create index processing_log_ended on processing_log (project_id, completed_at, id);

-- Of a tree that is too large to go at once: the runs whose parent, base or flow run is gone already.
create table run_removals (run_id uuid primary key);

-- A task that goes is looked for as the parent of others.
create index tasks_of_parent on tasks (parent_task_id) where parent_task_id is not null;
