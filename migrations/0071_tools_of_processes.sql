-- Each process publishes the names of its tools beside those of its functions. Null is the row of an earlier release,
-- which publishes none; such a process may have any tool.
alter table process_functions add column tools text[];

-- The tools that a process must have to work on a run: not those of MCP servers, which are in the database, nor those
-- that every release since this one has.
create function muster.needed_tools(names text[]) returns text[] language sql immutable parallel safe as $$
  select coalesce(array_agg(distinct name order by name), '{}') from unnest(names) as name
  where name not like 'mcp:%' and name <> all (array[
    'spawn_agent', 'ask_human', 'finish_loop', 'object_create', 'object_update', 'object_delete', 'object_get',
    'object_search', 'relationship_create', 'task_create', 'task_list', 'task_update', 'budget_add', 'http_fetch'])
$$;

create function muster.tools_of_agent(tools text[], steps jsonb) returns text[] language sql immutable parallel safe as $$
  select muster.needed_tools(tools || array(
    select jsonb_array_elements_text(step->'tools') from jsonb_array_elements(steps) as step
    where jsonb_typeof(step->'tools') = 'array'))
$$;

-- The tools of a specialist of a supervisor system; its supervisor has none.
create function muster.tools_of_part(part jsonb) returns text[] language sql immutable parallel safe as $$
  select muster.needed_tools(array(
    select jsonb_array_elements_text(part->'config'->'tools') where jsonb_typeof(part->'config'->'tools') = 'array'))
$$;

alter table agents add column needs text[] not null generated always as (muster.tools_of_agent(tools, steps)) stored;

alter table agent_runs
  -- The beginning of a wait for a tool, and the milliseconds of earlier such waits. A timeout does not count them.
  add column tool_wait_since timestamptz,
  add column waited bigint not null default 0;

-- Agents whose runs wait because no live process has their tools. The run of a specialist has no agent and stands for
-- itself. `task_id` is the task that told people of it.
create table tool_waits (
  waiter_id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  tool text not null,
  since timestamptz not null default muster.now(),
  task_id uuid
);
create index tool_waits_of_project on tool_waits (project_id);
