-- Tools from outside. The list that was approved is kept with the server: a tool that changes after that is not called
-- until someone has looked at it again.
create table mcp_servers (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  name text not null,
  url text,
  command text,
  args jsonb not null default '[]',
  header_names text[] not null default '{}',
  sealed_headers bytea,
  -- Only then may the address be a private one.
  set_by_instance_admin boolean not null,
  tools jsonb not null,
  -- What the server offers by now, where that is not what was approved.
  pending_tools jsonb,
  created_at timestamptz not null default muster.now(),
  updated_at timestamptz not null default muster.now(),
  constraint mcp_servers_name unique (project_id, name),
  constraint mcp_servers_place check ((url is null) <> (command is null))
);
create index mcp_servers_newest on mcp_servers (project_id, created_at desc, id desc);
