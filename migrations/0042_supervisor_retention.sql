-- no transaction
-- Tables that may be large are read and written while these indexes are made.

-- Evals are removed by the time of their end.
create index concurrently evals_ended on evals (project_id, completed_at, id) where not is_open;
-- Runs that stopped because a model was unavailable, and that nobody has continued.
create index concurrently agent_runs_unavailable on agent_runs (project_id, created_at, id)
  where status = 'paused' and pause_reason = 'unavailable' and completed_at is null;
