-- Addresses at which other systems start an agent.
create table hooks (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  agent_id uuid not null references agents on delete cascade,
  name text not null,
  sealed_secret bytea not null,
  -- The secrets before the last rotations, newest first, and until when each holds.
  sealed_old_secrets bytea[] not null default '{}',
  old_secrets_until timestamptz[] not null default '{}',
  last_used_at timestamptz,
  created_at timestamptz not null default muster.now()
);
create index hooks_newest on hooks (agent_id, created_at desc, id desc);

-- What a sender delivers twice under one id starts one run.
create table hook_deliveries (
  hook_id uuid not null references hooks on delete cascade,
  webhook_id text not null,
  run_id uuid not null,
  received_at timestamptz not null default muster.now(),
  primary key (hook_id, webhook_id)
);
create index hook_deliveries_age on hook_deliveries (received_at);
