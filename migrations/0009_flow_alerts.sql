-- Flow runs that take longer than expected, and what people are told about them.

-- Milliseconds, told from the tree before it runs. What earlier runs of the same flow took is asked for when it matters.
alter table flow_runs add column expected integer;
create index flow_runs_running on flow_runs (started_at) where status = 'running';
create index flow_runs_completed on flow_runs (flow_id, completed_at desc) where status = 'completed';

create table flow_alerts (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  flow_run_id uuid not null references flow_runs on delete cascade,
  kind text not null check (kind in ('slow')),
  -- Of the flow run, at that moment.
  progress jsonb not null,
  suspected_cause text not null,
  actions jsonb not null,
  created_at timestamptz not null default muster.now(),
  acked_at timestamptz
);
-- However many processes look, a person is told once.
create unique index flow_alerts_open on flow_alerts (flow_run_id, kind) where acked_at is null;
create index flow_alerts_of_run on flow_alerts (flow_run_id);
create index flow_alerts_newest on flow_alerts (project_id, created_at desc, id desc);
