-- no transaction
-- The runs that wait for a provider, by agent: such an agent takes up no other task.
create index concurrently agent_runs_of_provider on agent_runs (project_id, agent_id) where waits_for = 'provider';
-- The list of runs by the reason of their pause. Only runs that pause have an entry.
create index concurrently agent_runs_by_reason on agent_runs (project_id, pause_reason, created_at desc, id desc)
  where pause_reason is not null;
