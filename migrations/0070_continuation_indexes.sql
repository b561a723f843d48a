-- no transaction
-- Tables that may be large are read and written while these indexes are made.

-- A leaf that is tried again continues its newest run.
create index concurrently agent_runs_of_leaf on agent_runs (flow_run_id, key_scope) where flow_run_id is not null;
-- A flow run has at most one continuation.
create index concurrently flow_runs_resumed on flow_runs (resumed_from) where resumed_from is not null;
