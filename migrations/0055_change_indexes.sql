-- no transaction
-- Tables that may be large are read and written while these indexes are made.

-- The rows of a project that changed since a snapshot. Rows without a transaction are not in them, so they begin empty.
create index concurrently agent_runs_changed on agent_runs (project_id, changed_in) where changed_in is not null;
create index concurrently flow_runs_changed on flow_runs (project_id, changed_in) where changed_in is not null;
create index concurrently tasks_changed on tasks (project_id, changed_in) where changed_in is not null;
create index concurrently agents_changed on agents (project_id, changed_in) where changed_in is not null;
create index concurrently objects_changed on objects (project_id, changed_in) where changed_in is not null;
create index concurrently flow_alerts_changed on flow_alerts (project_id, changed_in) where changed_in is not null;
create index concurrently agent_messages_changed on agent_messages (project_id, changed_in) where changed_in is not null;
