-- The ground everything stands on: the clock, the instance, people, projects, keys, providers, and who did what.

-- All our SQL takes the time from here. Production never changes it; a test start replaces it with a settable one.
create function muster.now() returns timestamptz language sql stable parallel safe as $$ select now() $$;

-- One row: which key seals the secrets of this database. A start with another key is refused.
create table instance (
  only_row boolean primary key default true check (only_row),
  secret_key_fingerprint text not null,
  created_at timestamptz not null default muster.now()
);

create table projects (
  id uuid primary key,
  name text not null,
  settings jsonb not null default '{}',
  halted_at timestamptz,
  created_at timestamptz not null default muster.now(),
  updated_at timestamptz not null default muster.now()
);
create index projects_newest on projects (created_at desc, id desc);

create schema auth;

create table auth.users (
  id uuid primary key,
  email text not null,
  name text not null,
  password_hash text,
  instance_admin boolean not null default false,
  created_at timestamptz not null default muster.now()
);
create unique index users_email on auth.users (lower(email));

-- Tokens are 256 random bits and only their SHA-256 is kept, so a leaked dump opens no session.
create table auth.sessions (
  id uuid primary key,
  user_id uuid not null references auth.users on delete cascade,
  token_hash bytea not null unique,
  address text,
  user_agent text,
  created_at timestamptz not null default muster.now(),
  last_seen_at timestamptz not null default muster.now(),
  expires_at timestamptz not null
);
create index sessions_of_user on auth.sessions (user_id);
create index sessions_expiry on auth.sessions (expires_at);

create table auth.sign_in_links (
  token_hash bytea primary key,
  user_id uuid not null references auth.users on delete cascade,
  created_at timestamptz not null default muster.now(),
  expires_at timestamptz not null
);
create index sign_in_links_of_user on auth.sign_in_links (user_id);

-- A member without a user is an invitation that was not accepted yet.
create table members (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  user_id uuid references auth.users on delete cascade,
  email text not null,
  role text not null check (role in ('admin', 'member', 'viewer')),
  invitation_hash bytea unique,
  invitation_expires_at timestamptz,
  created_at timestamptz not null default muster.now(),
  accepted_at timestamptz
);
create unique index members_email on members (project_id, lower(email));
create unique index members_user on members (user_id, project_id) where user_id is not null;
create index members_newest on members (project_id, created_at desc, id desc);

-- A revoked key stays as a row: what it did is attributed to it.
create table api_keys (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  name text not null,
  role text not null check (role in ('admin', 'member', 'viewer')),
  prefix text not null,
  key_hash bytea not null unique,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default muster.now()
);
create index api_keys_newest on api_keys (project_id, created_at desc, id desc) where revoked_at is null;

create table providers (
  name text primary key,
  kind text not null,
  base_url text,
  sealed_api_key bytea,
  prices jsonb not null default '{}',
  options jsonb not null default '{}',
  source text not null default 'api' check (source in ('api', 'environment', 'built-in')),
  created_at timestamptz not null default muster.now(),
  updated_at timestamptz not null default muster.now()
);

-- Append-only. No foreign key to projects: what was done outlives the project it was done to.
create table audit_log (
  seq bigint generated always as identity primary key,
  id uuid not null,
  project_id uuid,
  action text not null,
  actor_type text not null,
  actor_id text,
  target_type text,
  target_id text,
  details jsonb not null default '{}',
  request_id text,
  address text,
  at timestamptz not null default muster.now(),
  xid xid8 not null default pg_current_xact_id()
);
create index audit_log_of_project on audit_log (project_id, seq desc);
create index audit_log_xid on audit_log (xid);

-- A chain over committed audit rows, so that an altered, removed or slipped-in row is found. A block holds the rows with
-- xid_from <= xid < xid_to and seq_from <= seq <= seq_to; seq_after and seq_until bound its region (audit/blocks.ts).
create table audit_blocks (
  number bigint primary key,
  seq_after bigint not null,
  seq_until bigint,
  xid_from xid8 not null,
  xid_to xid8 not null,
  seq_from bigint not null,
  seq_to bigint not null,
  row_count integer not null,
  hash bytea not null,
  sealed_at timestamptz not null default muster.now()
);
create index audit_blocks_highest on audit_blocks (seq_to);

create function muster.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'insufficient_privilege';
end $$;
create trigger audit_log_append_only before update or delete or truncate on audit_log
  for each statement execute function muster.refuse_change();
create trigger audit_blocks_append_only before update or delete or truncate on audit_blocks
  for each statement execute function muster.refuse_change();

-- Answers are sealed: the answer to "create a key" holds the key.
create table idempotency_keys (
  scope text not null,
  route text not null,
  key text not null,
  body_hash bytea not null,
  status integer,
  sealed_answer bytea,
  created_at timestamptz not null default muster.now(),
  primary key (scope, route, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);
