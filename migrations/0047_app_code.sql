-- Agents and flows that follow the code of an app module. `app_file` names the module; an entry without it was made by a
-- request. `app_definition` is the entry as the code last described it, and null where the code no longer has it.
alter table agents add column app_file text, add column app_definition jsonb;
alter table flows add column enabled boolean not null default true,
  add column app_file text, add column app_definition jsonb;

-- One entry for each agent and flow that the code has, so a start reads all of them.
create index agents_of_code on agents (project_id) where app_definition is not null;
create index flows_of_code on flows (project_id) where app_definition is not null;
