-- no transaction
-- Runs that people and triggers have started, for the list without sub-runs and leaves, which may be a million newer
-- ones. A row is in this index from its beginning or never: neither column changes. The three entries of a run take a
-- tenth of the time of its bare row (an insert and two updates).
create index concurrently agent_runs_on_top on agent_runs (project_id, status, created_at desc, id desc)
  where parent_run_id is null and flow_run_id is null;
