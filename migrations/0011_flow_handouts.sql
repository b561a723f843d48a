-- Function leaves that the owner of a flow run leaves to whoever knows the function and has room. A process that dies
-- loses its handouts to another; what becomes of one is a fact that the owner of the flow run takes up.
create table flow_handouts (
  run_id uuid not null references flow_runs on delete cascade,
  task_id text not null,
  attempt integer not null,
  project_id uuid not null,
  function text not null,
  -- {leaf, argument, isEach}
  call jsonb not null,
  created_at timestamptz not null default muster.now(),
  owner uuid,
  fence bigint not null default 0,
  crashes smallint not null default 0,
  outcome jsonb,
  primary key (run_id, task_id, attempt)
);
create index flow_handouts_waiting on flow_handouts (created_at) where owner is null and outcome is null;
create index flow_handouts_owned on flow_handouts (owner) where owner is not null and outcome is null;

create function muster.count_ended_handout() returns trigger language plpgsql as $$
begin
  update flow_runs set
    ended_leaves = ended_leaves + 1,
    ready_at = case when owner is null and completed_at is null then muster.now() else ready_at end
  where id = new.run_id;
  perform pg_notify('muster_flow', new.run_id::text);
  return null;
end $$;
create trigger flow_handouts_flow after update of outcome on flow_handouts for each row
  when (new.outcome is not null and old.outcome is null) execute function muster.count_ended_handout();

-- Which functions each process knows.
create table process_functions (
  worker_id uuid primary key references workers on delete cascade,
  names text[] not null
);

-- Functions that whoever works on the flow run must know itself: those of its pipelines and sources.
alter table flow_runs add column needs text[] not null default '{}';
