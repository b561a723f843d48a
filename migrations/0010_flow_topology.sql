-- How work is to reach the workers of a flow run's adaptive parts, where somebody asked for it while it is under way.
alter table flow_runs
  -- What was asked for last. Parts that begin later begin with it.
  add column wanted_topology text check (wanted_topology in ('hierarchical', 'mesh', 'star', 'custom')),
  -- Null once the parts under way have it.
  add column topology_wanted_at timestamptz;

-- What runs have measured of a kind of workload is asked whenever a flow starts that leaves its topology open.
create index flow_events_measured on flow_events ((data->>'workload'), at desc) where kind = 'topology.measured';
