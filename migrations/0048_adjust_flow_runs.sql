-- The number of times that somebody changed the timeout or the workers of a flow run. An owner that gives the flow run up
-- until it has news says how many it has seen: one that came meanwhile is not lost.
alter table flow_runs add column adjustments integer not null default 0;

-- The change of timeout and workers that would help the flow run, as an alert proposes it.
alter table flow_alerts add column adjust jsonb;
