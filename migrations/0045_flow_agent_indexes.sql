-- no transaction
-- Tables that may be large are read and written while these indexes are made.

-- Runs that wait for a reservation of an agent above them to settle.
create index concurrently agent_runs_of_payers on agent_runs using gin (payers)
  where waits_for = 'budget' and payers <> '{}';
