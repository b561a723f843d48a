-- Variables of the programs that MCP servers are: their names, and their values sealed like those of headers.
alter table mcp_servers add column env_names text[] not null default '{}';
alter table mcp_servers add column sealed_env bytea;
-- Whoever approves at this moment, and until when that is believed.
alter table mcp_servers add column approval_id uuid;
alter table mcp_servers add column approval_until timestamptz;
