-- Evals: the same cases, run on several variants of a project's supervisor system.

create table evals (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  name text not null,
  -- The variants in the order in which they are compared, and each as it was configured when the eval was made.
  variants text[] not null,
  systems jsonb not null,
  status text not null default 'running' check (status in ('running', 'completed', 'failed', 'cancelled')),
  error_message text,
  -- The number of results that there will be: one for each case and variant.
  total integer not null,
  done integer not null default 0,
  -- True until the last run has ended, also where the eval was cancelled or failed before.
  is_open boolean not null default true,
  created_at timestamptz not null default muster.now(),
  completed_at timestamptz
);
create index evals_by_age on evals (project_id, created_at desc, id desc);
create index evals_open on evals (project_id, created_at, id) where is_open;

create table eval_cases (
  eval_id uuid not null references evals on delete cascade,
  place integer not null,
  task text not null,
  metadata jsonb not null,
  expect jsonb not null,
  -- The recorded run that the case was taken from.
  recorded_run_id uuid,
  primary key (eval_id, place)
);

-- One row for each case and variant. It waits without a run, and is under way until it has an end.
create table eval_results (
  eval_id uuid not null references evals on delete cascade,
  place integer not null,
  -- The place of the variant in evals.variants.
  variant smallint not null,
  run_id uuid,
  ended_at timestamptz,
  -- Null where the eval was stopped before the run had an outcome.
  passed boolean,
  status text,
  route jsonb,
  output text,
  reason text,
  latency integer,
  tokens bigint,
  primary key (eval_id, place, variant)
);
create index eval_results_waiting on eval_results (eval_id, place, variant) where run_id is null;
create index eval_results_under_way on eval_results (eval_id) where run_id is not null and ended_at is null;
