-- Runs, flow runs and handed out leaves are queues of one kind. `ready_at` says that a row wants an owner now;
-- `wake_at` says when it will want one, so that the index of what is ready holds nothing else. Claims are dealt over
-- projects, so that index begins with the project. Rows that took two processes with them are suspects: they stand in an
-- index of their own and are taken one at a time.
alter table agent_runs
  add column wake_at timestamptz,
  -- Counts what happened to the run that it may be waiting for. A run that parks says how many it has seen.
  add column signals integer not null default 0;
update agent_runs set wake_at = ready_at, ready_at = null where ready_at > muster.now();
drop index agent_runs_ready;
create index agent_runs_ready on agent_runs (project_id, priority desc, ready_at)
  where ready_at is not null and crashes < 2;
create index agent_runs_suspect on agent_runs (ready_at) where ready_at is not null and crashes >= 2;
create index agent_runs_due on agent_runs (wake_at) where wake_at is not null;
create index agent_runs_of_budget on agent_runs (agent_id) where waits_for = 'budget';
-- Runs that sleep although what they wait for has happened. There should be none; a sweep looks.
create index agent_runs_overlooked on agent_runs (id)
  where owner is null and ready_at is null and completed_at is null and waits_for is not null
    and (cancel_requested_at is not null or (waits_for = 'children' and open_children <= 0));
create index tasks_answered on tasks (completed_at) where kind = 'escalation' and run_id is not null;

alter table flow_runs add column wake_at timestamptz;
update flow_runs set wake_at = ready_at, ready_at = null where ready_at > muster.now();
drop index flow_runs_ready;
create index flow_runs_ready on flow_runs (project_id, ready_at) where ready_at is not null and crashes < 2;
create index flow_runs_suspect on flow_runs (ready_at) where ready_at is not null and crashes >= 2;
create index flow_runs_due on flow_runs (wake_at) where wake_at is not null;
create index flow_runs_owned on flow_runs (owner) where owner is not null;

alter table flow_handouts add column id uuid not null default gen_random_uuid();
create unique index flow_handouts_id on flow_handouts (id);
drop index flow_handouts_waiting;
create index flow_handouts_waiting on flow_handouts (project_id, created_at)
  where owner is null and outcome is null and crashes < 2;
create index flow_handouts_suspect on flow_handouts (created_at) where owner is null and outcome is null and crashes >= 2;

-- The suspect that is under way, one in the whole instance: if its process dies, the crash is charged to it alone.
create table suspect_under_way (
  only_one boolean primary key default true check (only_one),
  worker_id uuid not null references workers on delete cascade,
  kind text not null check (kind in ('run', 'flow_run', 'leaf')),
  item_id uuid not null,
  taken_at timestamptz not null default muster.now()
);
create index suspect_under_way_worker on suspect_under_way (worker_id);

-- Projects that every process asks about every second.
create index projects_halted on projects (id) where halted_at is not null;
create index projects_capped on projects (id) where settings->>'max_concurrent_runs' is not null;
