-- The supervisor system: runs that no agent makes.

-- Set where a run has no agent: the part of a system variant that the run plays, as it was configured at the start.
alter table agent_runs alter column agent_id drop not null;
alter table agent_runs add column part jsonb;

-- The configuration of the variants of a project. A variant without a row is as it came with Muster.
create table systems (
  project_id uuid not null references projects on delete cascade,
  variant text collate "C" not null,
  config jsonb not null,
  traffic integer not null,
  updated_at timestamptz not null default muster.now(),
  primary key (project_id, variant)
);

-- The variant that a context had before.
create index agent_runs_of_context on agent_runs (project_id, (part->'context'->>'context_id'), created_at desc, id desc)
  where part->'context'->>'context_id' is not null;
