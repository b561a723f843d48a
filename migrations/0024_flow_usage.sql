-- What a flow run has used: its agents' runs, counted as each ends, and the calls that functions called muster.* make of
-- the project's model, counted as each is made. The latter stand nowhere else, so they are told apart.
alter table flow_runs
  add column input_tokens bigint not null default 0,
  add column output_tokens bigint not null default 0,
  add column cost_usd double precision,
  add column usage_estimated boolean not null default false,
  add column asked_calls integer not null default 0,
  add column asked_input_tokens bigint not null default 0,
  add column asked_output_tokens bigint not null default 0,
  add column asked_cost_usd double precision;

create or replace function muster.count_ended_leaf() returns trigger language plpgsql as $$
begin
  perform muster.leaf_has_ended(new.flow_run_id);
  if new.input_tokens + new.output_tokens > 0 then
    update flow_runs set
      input_tokens = input_tokens + new.input_tokens,
      output_tokens = output_tokens + new.output_tokens,
      cost_usd = case when new.cost_usd is null then cost_usd else coalesce(cost_usd, 0) + new.cost_usd end,
      usage_estimated = usage_estimated or new.usage_estimated
    where id = new.flow_run_id;
  end if;
  return null;
end $$;

update flow_runs f set
  input_tokens = u.input_tokens, output_tokens = u.output_tokens, cost_usd = u.cost_usd, usage_estimated = u.estimated
from (
  select flow_run_id, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens, sum(cost_usd) as cost_usd,
    bool_or(usage_estimated) as estimated
  from agent_runs where flow_run_id is not null and completed_at is not null group by 1) u
where f.id = u.flow_run_id;
