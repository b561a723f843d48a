-- The tokens so far count for the day on which their run, or their flow run, was made. The run of an agent that is a flow
-- shows the tokens of its flow run, which others used.
insert into usage_days
select project_id, (created_at at time zone 'UTC')::date, agent_id,
  case when agent_id is null then 'supervisor' else 'agent' end,
  sum(input_tokens), sum(output_tokens), sum(cost_usd)
from agent_runs where input_tokens + output_tokens > 0 and started_flow_run_id is null
group by 1, 2, 3, 4;
insert into usage_days
select project_id, (created_at at time zone 'UTC')::date, null, 'function',
  sum(asked_input_tokens), sum(asked_output_tokens), sum(asked_cost_usd)
from flow_runs where asked_input_tokens + asked_output_tokens > 0
group by 1, 2;
