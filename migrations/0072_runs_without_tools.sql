-- no transaction
-- Runs that wait for a process with their tools.
create index concurrently agent_runs_of_tool on agent_runs (coalesce(agent_id, id)) where waits_for = 'tool';
