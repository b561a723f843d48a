-- When scheduled agents run next. A tick claims its row, starts the run and moves the row on in one transaction, so
-- that a tick gives one run however many processes look.
create table schedules (
  agent_id uuid primary key references agents on delete cascade,
  project_id uuid not null,
  cron_schedule text not null,
  timezone text not null,
  catch_up text not null,
  -- Null while the agent is disabled or not scheduled.
  next_run_at timestamptz,
  last_run_at timestamptz
);
create index schedules_due on schedules (next_run_at) where next_run_at is not null;

-- One row: whether anybody was there when a tick was due. Ticks up to `back_at` that were not run were missed.
create table schedule_watch (
  only_row boolean primary key default true check (only_row),
  seen_at timestamptz not null,
  back_at timestamptz not null
);

-- Ticks while a project is halted do not count.
alter table projects add column unhalted_at timestamptz;
