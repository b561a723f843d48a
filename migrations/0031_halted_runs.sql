-- no transaction

-- The runs that sleep because of an off switch, in the order in which they are woken. A run that was woken leaves the
-- index at once: the next batch does not step over it.
create index concurrently agent_runs_asleep_halted on agent_runs (project_id, id)
  where status = 'paused' and pause_reason = 'halted' and owner is null and ready_at is null;
drop index concurrently agent_runs_halted;
