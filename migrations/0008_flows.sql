-- Flows, their runs, and what happened to those: an append-only record per flow run, like a run's journal.

create table flows (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  name text not null,
  root jsonb not null,
  created_at timestamptz not null default muster.now(),
  updated_at timestamptz not null default muster.now()
);
create unique index flows_name on flows (project_id, name);
create index flows_newest on flows (project_id, created_at desc, id desc);

create table flow_runs (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  flow_id uuid references flows on delete set null,
  root jsonb not null,
  input jsonb not null,
  status text not null default 'queued'
    check (status in ('queued', 'running', 'completed', 'partial', 'failed', 'cancelled', 'timed_out')),
  output jsonb,
  error text,
  progress jsonb not null,
  -- The most leaves under way in this run.
  workers integer,
  timeout integer not null,
  created_at timestamptz not null default muster.now(),
  started_at timestamptz,
  completed_at timestamptz,
  duration integer,
  --
  last_seq bigint not null default 0,
  fence bigint not null default 0,
  owner uuid,
  -- Wants an owner from then on; null while it has one, while it waits for its agents, and after its end.
  ready_at timestamptz default muster.now(),
  crashes smallint not null default 0,
  -- How many agents that are leaves of it have ended. Who parks a flow says how many it has seen.
  ended_leaves integer not null default 0,
  cancel_requested_at timestamptz
) with (fillfactor = 70);
create index flow_runs_newest on flow_runs (project_id, created_at desc, id desc);
create index flow_runs_of_flow on flow_runs (flow_id) where flow_id is not null;
create index flow_runs_ready on flow_runs (ready_at) where ready_at is not null;
create index flow_runs_owned on flow_runs (owner) where owner is not null;

-- No foreign key, as for runs: events are only ever inserted from the row they belong to.
create table flow_events (
  run_id uuid not null,
  seq bigint not null,
  id uuid not null,
  kind text not null,
  data jsonb not null,
  at timestamptz not null default muster.now(),
  primary key (run_id, seq)
);

create function muster.delete_events_of_flow_runs() returns trigger language plpgsql as $$
begin
  delete from flow_events e using gone where e.run_id = gone.id;
  return null;
end $$;
create trigger flow_runs_events after delete on flow_runs referencing old table as gone
  for each statement execute function muster.delete_events_of_flow_runs();

alter table agent_runs
  -- The flow run that this run is a leaf of.
  add column flow_run_id uuid,
  -- {name, schema}: the run's answer is JSON of this shape, asked for under this name.
  add column answer jsonb;
create index agent_runs_of_flow on agent_runs (flow_run_id) where flow_run_id is not null;

-- A leaf that ends is counted on its flow in the same commit. The count makes a flow that has parked ready; one that is
-- about to park finds a count it has not seen; and the owner of one that is under way hears of it.
create function muster.count_ended_leaf() returns trigger language plpgsql as $$
begin
  update flow_runs set
    ended_leaves = ended_leaves + 1,
    ready_at = case when owner is null and completed_at is null then muster.now() else ready_at end
  where id = new.flow_run_id;
  perform pg_notify('muster_flow', new.flow_run_id::text);
  return null;
end $$;
create trigger agent_runs_flow after update of status on agent_runs for each row
  when (new.flow_run_id is not null and new.completed_at is not null and old.completed_at is null)
  execute function muster.count_ended_leaf();
