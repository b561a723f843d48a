-- Providers that are away or just coming back, by model, known to all processes. The row is there while anybody waits.
-- `next_try_at` is the time at which one of those who wait is let go, if nothing is heard until then. `is_probing` tells
-- that one was let go and has not answered yet: its failure makes the next wait longer, the failures of others do not.
create table provider_outages (
  provider text not null,
  model text not null,
  since timestamptz not null default muster.now(),
  message text not null,
  -- False: the provider has answered again, and those who wait go a few at a time.
  is_away boolean not null default true,
  failures integer not null default 1,
  next_try_at timestamptz not null,
  -- The end of the longest wait that the provider has asked for.
  not_before timestamptz,
  is_probing boolean not null default false,
  failed_at timestamptz not null default muster.now(),
  -- The last time that it refused a call while it answered others.
  busy_at timestamptz,
  -- The project that was dealt to last.
  cursor uuid not null default '00000000-0000-0000-0000-000000000000',
  primary key (provider, model)
);

-- Those who wait for their turn: runs (the id is the run's), and calls of functions of flows, each in a process. A run that
-- was cancelled or woken in another way may leave its row behind; its turn passes to the next.
create table provider_waits (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  provider text not null,
  model text not null,
  -- Those who waited less often come first.
  waits integer not null,
  since timestamptz not null default muster.now(),
  worker_id uuid references workers on delete cascade,
  flow_run_id uuid references flow_runs on delete cascade,
  task_id text,
  -- Of a call: the time at which it was let go. A call whose provider is only busy waits for no turn.
  released_at timestamptz
);
create index provider_waits_in_turn on provider_waits (provider, model, project_id, waits, since) where released_at is null;
create index provider_waits_of_project on provider_waits (project_id);
create index provider_waits_of_worker on provider_waits (worker_id) where worker_id is not null;
create index provider_waits_of_flow on provider_waits (flow_run_id) where flow_run_id is not null;

-- A run of a leaf that waits for its provider waits like one that waits for a person: the flow run may stand still.
create or replace function muster.run_waits_for_person(r agent_runs) returns boolean language sql immutable as $$
  select r.status = 'paused' and coalesce(r.pause_reason, '') in ('human', 'unavailable') and r.completed_at is null
$$;

-- The event in the journal of the flow run tells what is waited for: a person or a provider.
create or replace function muster.note_leaf_wait(flow_run uuid, leaf text, run uuid, waits boolean)
returns void language plpgsql as $$
declare
  waiting integer;
  told_seq bigint;
begin
  perform from flow_runs where id = flow_run for no key update;
  if not found then
    return;
  end if;
  if waits then
    insert into flow_leaf_waits as w (flow_run_id, task_id, runs) values (flow_run, leaf, 1)
    on conflict (flow_run_id, md5(task_id)) do update set runs = w.runs + 1 returning runs into waiting;
  else
    update flow_leaf_waits set runs = runs - 1 where flow_run_id = flow_run and md5(task_id) = md5(leaf)
    returning runs into waiting;
    delete from flow_leaf_waits where flow_run_id = flow_run and md5(task_id) = md5(leaf) and runs <= 0;
  end if;
  update flow_runs set
    people_waits = greatest(0, people_waits
      + case when waits and waiting = 1 then 1 when not waits and waiting = 0 then -1 else 0 end),
    last_seq = last_seq + (completed_at is null)::int,
    check_at = case when check_at is null or waits then check_at else muster.now() end
  where id = flow_run
  returning case when completed_at is null then last_seq end into told_seq;
  if told_seq is not null then
    insert into flow_events (run_id, seq, id, kind, data) values (flow_run, told_seq, gen_random_uuid(),
      case when waits then 'task.waiting' else 'task.continued' end,
      jsonb_strip_nulls(jsonb_build_object('task_id', leaf, 'run_id', run, 'waiting_for', coalesce(
        (select 'provider ' || w.provider from provider_waits w where w.id = run),
        (select r.waiting_for from agent_runs r where r.id = run)))));
  end if;
end $$;

-- A function of a flow that asks a model waits, too. If its process dies, its row goes with the row of the process.
create function muster.note_wait_of_call() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    perform muster.note_leaf_wait(new.flow_run_id, new.task_id, new.id, true);
  else
    perform muster.note_leaf_wait(old.flow_run_id, old.task_id, old.id, false);
  end if;
  return null;
end $$;
create trigger provider_waits_begin after insert on provider_waits for each row
  when (new.flow_run_id is not null and new.task_id is not null) execute function muster.note_wait_of_call();
create trigger provider_waits_end after delete on provider_waits for each row
  when (old.flow_run_id is not null and old.task_id is not null) execute function muster.note_wait_of_call();
