-- The object graph: typed, versioned records, every version with who made it, and the edges between them.

create table objects (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  type text not null,
  key text,
  properties jsonb not null,
  version integer not null default 1,
  -- Who made the newest version.
  actor_type text not null check (actor_type in ('user', 'agent')),
  actor_id uuid,
  -- The words of key and properties, for the search.
  words tsvector not null,
  created_at timestamptz not null default muster.now(),
  updated_at timestamptz not null default muster.now(),
  deleted_at timestamptz
) with (fillfactor = 80);
create unique index objects_key on objects (project_id, type, key) where key is not null and deleted_at is null;
create index objects_newest on objects (project_id, created_at desc, id desc) where deleted_at is null;
create index objects_of_type on objects (project_id, type, created_at desc, id desc) where deleted_at is null;
create index objects_words on objects using gin (words) where deleted_at is null;

-- No foreign key: a version is only ever inserted by the statement that writes its object.
create table object_versions (
  object_id uuid not null,
  version integer not null,
  op text not null check (op in ('create', 'update', 'delete')),
  properties jsonb not null,
  actor_type text not null,
  actor_id uuid,
  run_id uuid,
  approved_by uuid,
  at timestamptz not null default muster.now(),
  primary key (object_id, version)
);

create function muster.delete_versions_of_objects() returns trigger language plpgsql as $$
begin
  delete from object_versions v using gone where v.object_id = gone.id;
  return null;
end $$;
create trigger objects_versions after delete on objects referencing old table as gone
  for each statement execute function muster.delete_versions_of_objects();

create table relationships (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  type text not null,
  from_id uuid not null references objects on delete cascade,
  to_id uuid not null references objects on delete cascade,
  properties jsonb not null default '{}',
  actor_type text not null check (actor_type in ('user', 'agent')),
  actor_id uuid,
  run_id uuid,
  approved_by uuid,
  created_at timestamptz not null default muster.now(),
  deleted_at timestamptz
);
create unique index relationships_once on relationships (from_id, to_id, type) where deleted_at is null;
create index relationships_to on relationships (to_id) where deleted_at is null;

-- Which agents react to what, one row per type and event, so that a change finds those it concerns by index and pays
-- nothing for the others. Written with the agent.
create table reaction_rules (
  agent_id uuid not null references agents on delete cascade,
  project_id uuid not null,
  -- '*' means every type.
  object_type text not null,
  event text not null check (event in ('created', 'updated', 'deleted')),
  ignores_self boolean not null,
  ignores_agents boolean not null,
  is_parallel boolean not null,
  primary key (agent_id, object_type, event)
);
create index reaction_rules_match on reaction_rules (project_id, object_type, event);

insert into reaction_rules
select a.id, a.project_id, t.type, e.event, (a.reaction_config->>'ignoreSelfTriggered')::boolean,
  (a.reaction_config->>'ignoreAgentTriggered')::boolean, a.reaction_config->>'concurrencyStrategy' = 'parallel'
from agents a, jsonb_array_elements_text(a.reaction_config->'objectTypes') t (type),
  jsonb_array_elements_text(a.reaction_config->'events') e (event)
where a.trigger_type = 'reaction' and a.enabled and a.deleted_at is null
on conflict do nothing;

-- What each reacting agent was given to do, and what became of it.
create table processing_log (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  agent_id uuid not null,
  graph_object_id uuid not null,
  object_version integer not null,
  event_type text not null,
  -- Tells events about the same version apart for agents that process in parallel; the same for all where they skip.
  delivery uuid not null,
  -- How many runs led to the change, one causing the other.
  depth integer not null,
  status text not null
    check (status in ('pending', 'processing', 'completed', 'failed', 'abandoned', 'skipped')),
  run_id uuid,
  error_message text,
  created_at timestamptz not null default muster.now(),
  started_at timestamptz,
  completed_at timestamptz,
  -- Since when its run has been at work without waiting for people; null while it waits.
  working_since timestamptz
) with (fillfactor = 70);
create unique index processing_log_once
  on processing_log (agent_id, graph_object_id, object_version, event_type, delivery);
create index processing_log_newest on processing_log (agent_id, created_at desc, id desc);
create index processing_log_working on processing_log (working_since) where working_since is not null;

alter table agent_runs
  -- The entry of the processing log that this run works on.
  add column entry_id uuid,
  -- How many runs led to this one, each started by a change that the one before had made.
  add column chain_depth integer not null default 0;

-- An entry says what its run does, from the same commit on, whoever moves the run. One that was given up stays so.
create function muster.note_processing() returns trigger language plpgsql as $$
begin
  if new.completed_at is null then
    update processing_log set
      status = 'processing',
      started_at = coalesce(started_at, muster.now()),
      working_since = case when new.status = 'running' then muster.now() end
    where id = new.entry_id and run_id = new.id and status in ('pending', 'processing');
  else
    update processing_log set
      status = case when new.status = 'completed' then 'completed' else 'failed' end,
      error_message = case new.status
        when 'completed' then null
        when 'failed' then new.error_message
        when 'cancelled' then 'The run was cancelled.'
        else 'The run was paused: ' || new.pause_reason || '.'
      end,
      completed_at = muster.now(),
      working_since = null
    where id = new.entry_id and run_id = new.id and status in ('pending', 'processing');
  end if;
  return null;
end $$;
create trigger agent_runs_processing after update of status on agent_runs for each row
  when (new.entry_id is not null and old.status is distinct from new.status)
  execute function muster.note_processing();

-- The retention of runs takes their entries too.
create function muster.delete_entries_of_runs() returns trigger language plpgsql as $$
begin
  delete from processing_log l using gone where l.id = gone.entry_id and l.run_id = gone.id;
  return null;
end $$;
create trigger agent_runs_entries after delete on agent_runs referencing old table as gone
  for each statement execute function muster.delete_entries_of_runs();

alter table tasks
  -- Of the run that suggested: what is approved later is a change of that depth.
  add column chain_depth integer not null default 0;
