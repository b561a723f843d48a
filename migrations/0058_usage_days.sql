-- The tokens of each day (UTC), by agent. A call counts once, for the agent that made it. The rows of runs may be removed;
-- these stay.
create table usage_days (
  project_id uuid not null references projects on delete cascade,
  day date not null,
  -- Null for the calls that no agent makes.
  agent_id uuid,
  source text not null check (source in ('agent', 'supervisor', 'function', 'other')),
  input_tokens bigint not null,
  output_tokens bigint not null,
  cost_usd double precision
) with (fillfactor = 80);
create unique index usage_days_once on usage_days (project_id, day, agent_id, source) nulls not distinct;

create function muster.add_usage_of_day(
  project uuid, on_day date, agent uuid, from_source text, tokens_in bigint, tokens_out bigint, cost double precision
) returns void language sql as $$
  insert into usage_days as u (project_id, day, agent_id, source, input_tokens, output_tokens, cost_usd)
  values (project, on_day, agent, from_source, tokens_in, tokens_out, cost)
  on conflict (project_id, day, agent_id, source) do update set
    input_tokens = u.input_tokens + excluded.input_tokens,
    output_tokens = u.output_tokens + excluded.output_tokens,
    cost_usd = case when excluded.cost_usd is null then u.cost_usd else coalesce(u.cost_usd, 0) + excluded.cost_usd end
$$;

-- The newest day stands in the rows that are written with every call anyway.
alter table agent_tokens
  add column day date,
  add column day_input bigint not null default 0,
  add column day_output bigint not null default 0,
  add column day_cost double precision;
alter table project_tokens
  add column day date,
  add column day_input bigint not null default 0,
  add column day_output bigint not null default 0,
  add column day_cost double precision;

-- Every append reads the condition of its trigger anew, so the condition is short.
create function muster.keep_day_of_agent() returns trigger language plpgsql as $$
begin
  perform muster.add_usage_of_day(
    a.project_id, old.day, old.agent_id, 'agent', old.day_input, old.day_output, old.day_cost)
  from agents a where a.id = old.agent_id and old.day_input + old.day_output > 0;
  return null;
end $$;
create trigger agent_tokens_day after update of day on agent_tokens for each row
  when (old.day <> new.day)
  execute function muster.keep_day_of_agent();

create function muster.keep_day_of_project() returns trigger language plpgsql as $$
begin
  perform muster.add_usage_of_day(
    old.project_id, old.day, null, 'supervisor', old.day_input, old.day_output, old.day_cost)
  where old.day_input + old.day_output > 0;
  return null;
end $$;
create trigger project_tokens_day after update of day on project_tokens for each row
  when (old.day <> new.day)
  execute function muster.keep_day_of_project();
