-- Checkpoints of LangGraph's graphs. Ids compare as LangGraph compares them: byte by byte.
create table supervisor_checkpoints (
  project_id uuid not null references projects on delete cascade,
  thread_id text collate "C" not null,
  checkpoint_ns text collate "C" not null,
  checkpoint_id text collate "C" not null,
  parent_id text collate "C",
  -- Without the values of its channels. json keeps the order of keys, which jsonb does not.
  checkpoint json not null,
  metadata json not null,
  created_at timestamptz not null default muster.now(),
  primary key (project_id, thread_id, checkpoint_ns, checkpoint_id)
);
-- The newest checkpoints of a project; the oldest for retention.
create index supervisor_checkpoints_by_age on supervisor_checkpoints (project_id, created_at, checkpoint_id);

-- The value of a channel from one version to the next: checkpoints in which it did not change share the row. An empty
-- channel has no row.
create table supervisor_channels (
  project_id uuid not null references projects on delete cascade,
  thread_id text collate "C" not null,
  checkpoint_ns text collate "C" not null,
  channel text collate "C" not null,
  version text collate "C" not null,
  value json not null,
  primary key (project_id, thread_id, checkpoint_ns, channel, version)
);

-- What finished tasks of a step wrote. They are stored while other tasks of the step still run, and may be stored
-- before their checkpoint.
create table supervisor_writes (
  project_id uuid not null references projects on delete cascade,
  thread_id text collate "C" not null,
  checkpoint_ns text collate "C" not null,
  checkpoint_id text collate "C" not null,
  task_id text collate "C" not null,
  place integer not null,
  channel text collate "C" not null,
  value json not null,
  primary key (project_id, thread_id, checkpoint_ns, checkpoint_id, task_id, place)
);

-- Rows that are inserted, read, and in the end deleted in bulk, as in 0014.
alter table supervisor_checkpoints set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_insert_scale_factor = 0.05);
alter table supervisor_channels set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_insert_scale_factor = 0.05);
alter table supervisor_writes set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_insert_scale_factor = 0.05);
