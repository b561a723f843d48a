-- no transaction
-- Every write of a run checks each index of the table, so one index serves both kinds of runs that wait for a
-- reservation of an agent to settle: the agent's own, and those that an agent above them pays for.
create index concurrently agent_runs_of_spenders on agent_runs using gin (array_append(payers, agent_id))
  where waits_for = 'budget';
drop index concurrently agent_runs_of_budget;
drop index concurrently agent_runs_of_payers;
