-- Agents, their runs, and the journal: the append-only record of everything that happened to a run.

create table agents (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  name text not null,
  role text not null default '',
  prompt text,
  prompt_id text,
  model jsonb,
  tools text[] not null default '{}',
  flow_type text not null default 'single' check (flow_type in ('single', 'sequential', 'loop')),
  steps jsonb not null default '[]',
  max_iterations integer,
  max_steps integer,
  default_timeout integer,
  trigger_type text not null default 'manual' check (trigger_type in ('manual', 'schedule', 'webhook', 'reaction')),
  cron_schedule text,
  timezone text not null default 'UTC',
  catch_up text not null default 'once' check (catch_up in ('once', 'skip', 'all')),
  reaction_config jsonb,
  execution_mode text not null default 'execute' check (execution_mode in ('execute', 'suggest', 'hybrid')),
  capabilities jsonb not null,
  senior_id uuid references agents on delete set null,
  competencies text[] not null default '{}',
  token_allocation bigint,
  enabled boolean not null default true,
  status text not null default 'active' check (status in ('active', 'bored', 'stuck', 'paused')),
  last_worked_at timestamptz,
  last_polled_at timestamptz,
  created_at timestamptz not null default muster.now(),
  updated_at timestamptz not null default muster.now(),
  -- Runs outlive their agent: what it did stays attributed to it.
  deleted_at timestamptz
);
create unique index agents_name on agents (project_id, name) where deleted_at is null;
create index agents_newest on agents (project_id, created_at desc, id desc) where deleted_at is null;
create index agents_of_senior on agents (senior_id) where senior_id is not null;

-- What agents have spent, apart from their definitions: written with every model call.
create table agent_tokens (
  agent_id uuid primary key,
  used bigint not null default 0,
  -- Upper bounds of the model calls under way; settled with the call, or by whoever takes its run over.
  reserved bigint not null default 0,
  -- The highest share of the allocation, in percent, whose crossing was recorded: 0, 90, 95 or 100.
  mark smallint not null default 0,
  last_active_at timestamptz
) with (fillfactor = 50);

-- A run's row is a projection of its journal, written by the same statement. The columns above the line are what
-- clients see; those below are ownership.
create table agent_runs (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  agent_id uuid not null,
  status text not null default 'queued'
    check (status in ('queued', 'running', 'completed', 'failed', 'cancelled', 'paused')),
  trigger jsonb not null,
  input jsonb not null,
  summary text,
  error_code text,
  error_message text,
  pause_reason text,
  step_count integer not null default 0,
  max_steps integer,
  timeout integer,
  parent_run_id uuid,
  resumed_from uuid,
  forked_from uuid,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  usage_estimated boolean not null default false,
  cost_usd double precision,
  created_at timestamptz not null default muster.now(),
  started_at timestamptz,
  completed_at timestamptz,
  duration integer,
  --
  depth smallint not null default 0,
  -- From the top: their streams show this run's events too.
  ancestors uuid[] not null default '{}',
  -- What this run may do at most, whatever its agent may: a child never has more rights than its parent.
  rights jsonb not null default '{}',
  -- A resumed or forked run begins where that journal stood at this seq.
  base_run_id uuid,
  base_seq bigint,
  priority smallint not null default 0,
  last_seq bigint not null default 0,
  fence bigint not null default 0,
  owner uuid,
  -- Wants a slot from then on; null while it has one, while it waits for something, and after its end.
  ready_at timestamptz default muster.now(),
  waits_for text,
  open_children integer not null default 0,
  reserved bigint not null default 0,
  crashes smallint not null default 0,
  cancel_requested_at timestamptz
) with (fillfactor = 70);
create index agent_runs_newest on agent_runs (project_id, created_at desc, id desc);
create index agent_runs_of_agent on agent_runs (agent_id, created_at desc, id desc);
create index agent_runs_of_parent on agent_runs (parent_run_id) where parent_run_id is not null;
create index agent_runs_based_on on agent_runs (base_run_id) where base_run_id is not null;
create index agent_runs_ready on agent_runs (priority desc, ready_at) where ready_at is not null;
create index agent_runs_owned on agent_runs (owner) where owner is not null;
create index agent_runs_halted on agent_runs (project_id) where status = 'paused' and pause_reason = 'halted';

-- No foreign key: events are only ever inserted from the row they belong to, and the check would cost a third of the
-- append (measured). Who deletes runs deletes their events.
create table run_events (
  run_id uuid not null,
  seq bigint not null,
  -- Made by whoever appends: a retry after "committed, then cut" finds its own rows.
  id uuid not null,
  kind text not null,
  data jsonb not null,
  at timestamptz not null default muster.now(),
  primary key (run_id, seq)
);

-- The text so far of steps under way, for the streams of other processes. Lost at a crash, as the steps are.
create unlogged table run_live_text (
  run_id uuid primary key,
  step integer not null,
  text text not null
);

-- Processes over this database. A worker whose lease has passed by the database's clock owns nothing any more.
create table workers (
  id uuid primary key,
  slots integer not null,
  started_at timestamptz not null default muster.now(),
  lease_until timestamptz not null,
  -- Held as a session advisory lock for as long as the process lives: the fast way to see that it died.
  lock_key bigint not null,
  -- A lock that is gone says nothing where the server itself has restarted since.
  locked_on timestamptz not null
);

-- What has no foreign key goes with its owner all the same, whoever deletes it: a project, or the retention of runs.
create function muster.delete_events_of_runs() returns trigger language plpgsql as $$
begin
  delete from run_events e using gone where e.run_id = gone.id;
  delete from run_live_text t using gone where t.run_id = gone.id;
  return null;
end $$;
create trigger agent_runs_events after delete on agent_runs referencing old table as gone
  for each statement execute function muster.delete_events_of_runs();

create function muster.delete_tokens_of_agents() returns trigger language plpgsql as $$
begin
  delete from agent_tokens t using gone where t.agent_id = gone.id;
  return null;
end $$;
create trigger agents_tokens after delete on agents referencing old table as gone
  for each statement execute function muster.delete_tokens_of_agents();
