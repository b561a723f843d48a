-- no transaction

-- Retention finds what has ended by age. Of runs the roots of trees: those below them go with them.
create index concurrently agent_runs_ended on agent_runs (project_id, completed_at, id)
  where completed_at is not null and parent_run_id is null and base_run_id is null and flow_run_id is null;
create index concurrently flow_runs_ended on flow_runs (project_id, completed_at, id) where completed_at is not null;
create index concurrently tasks_resolved on tasks (project_id, completed_at, id) where completed_at is not null;
create index concurrently processing_log_ended on processing_log (project_id, completed_at, id);

-- Lists are read by project, agent, parent or flow run, and by status. A list of all statuses merges those of each, so
-- that no index is needed beside these.
create index concurrently agent_runs_by_project on agent_runs (project_id, status, created_at desc, id desc);
create index concurrently agent_runs_by_agent on agent_runs
  (project_id, agent_id, status, created_at desc, id desc);
create index concurrently agent_runs_by_parent on agent_runs (parent_run_id, status, created_at desc, id desc)
  where parent_run_id is not null;
create index concurrently agent_runs_by_flow_run on agent_runs (flow_run_id, status, created_at desc, id desc)
  where flow_run_id is not null;
drop index concurrently agent_runs_newest;
drop index concurrently agent_runs_of_agent;
drop index concurrently agent_runs_of_parent;
drop index concurrently agent_runs_of_flow;

create index concurrently flow_runs_by_project on flow_runs (project_id, status, created_at desc, id desc);
create index concurrently flow_runs_by_flow on flow_runs (project_id, flow_id, status, created_at desc, id desc)
  where flow_id is not null;
drop index concurrently flow_runs_newest;

create index concurrently tasks_by_kind on tasks (project_id, kind, status, created_at desc, id desc);
create index concurrently tasks_by_assignee on tasks
  (project_id, assigned_to, kind, status, created_at desc, id desc)
  where assigned_to is not null;

create index concurrently processing_log_by_status on processing_log (agent_id, status, created_at desc, id desc);
drop index concurrently processing_log_newest;

create index concurrently flow_alerts_unseen on flow_alerts (project_id, created_at desc, id desc) where acked_at is null;
create index concurrently flow_alerts_acked on flow_alerts (project_id, created_at desc, id desc)
  where acked_at is not null;

-- Whoever deletes a row is asked for what refers to it. An index of the rows that are not deleted does not answer that.
create index concurrently tasks_of_parent on tasks (parent_task_id) where parent_task_id is not null;
create index concurrently agents_of_project on agents (project_id);
create index concurrently api_keys_of_project on api_keys (project_id);
create index concurrently hooks_of_project on hooks (project_id);
create index concurrently objects_of_project on objects (project_id);
create index concurrently relationships_of_project on relationships (project_id);
create index concurrently relationships_from on relationships (from_id);
create index concurrently relationships_into on relationships (to_id);
