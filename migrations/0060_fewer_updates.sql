-- Many leaves of a flow run end in one statement, and each update of their flow run's row passes over all earlier
-- versions of the row: such updates took half of the time of the statement. The trigger on the rows of runs now notes
-- their ends in a setting of the transaction, and a trigger on the statement updates each flow run once.
create function muster.end_leaves() returns trigger language plpgsql as $$
declare
  noted text := current_setting('muster.ended_leaves', true);
  leaves record;
  above uuid;
  has_ended boolean;
begin
  if coalesce(noted, '') = '' then
    return null;
  end if;
  perform set_config('muster.ended_leaves', '', true);
  -- The flow runs are locked in the order of flows/execution/journal.ts.
  for leaves in
    select e.*, f.within from (
      select flow_run_id, count(*) as ended, sum(tokens_in) as tokens_in, sum(tokens_out) as tokens_out,
        sum(cost) as cost, bool_or(is_estimated) as is_estimated
      from jsonb_to_recordset(('[' || noted || ']')::jsonb)
        as n (flow_run_id uuid, tokens_in bigint, tokens_out bigint, cost double precision, is_estimated boolean)
      group by flow_run_id
    ) e join flow_runs f on f.id = e.flow_run_id
    order by coalesce((f.within->>'depth')::int, 0) desc, f.id
  loop
    update flow_runs set
      ended_leaves = ended_leaves + leaves.ended,
      ready_at = case when owner is null and completed_at is null then muster.now() else ready_at end,
      input_tokens = input_tokens + leaves.tokens_in,
      output_tokens = output_tokens + leaves.tokens_out,
      cost_usd = case when leaves.cost is null then cost_usd else coalesce(cost_usd, 0) + leaves.cost end,
      usage_estimated = usage_estimated or leaves.is_estimated,
      changed_in = case when completed_at is not null and leaves.tokens_in + leaves.tokens_out > 0
        then pg_current_xact_id() else changed_in end
    where id = leaves.flow_run_id
    returning parent_run_id, completed_at is not null into above, has_ended;
    perform pg_notify('muster_flow', leaves.flow_run_id::text);
    if above is not null and has_ended and leaves.tokens_in + leaves.tokens_out > 0 then
      perform muster.add_usage_above(above, leaves.tokens_in::bigint, leaves.tokens_out::bigint, leaves.cost,
        leaves.is_estimated);
    end if;
  end loop;
  return null;
end $$;
create trigger agent_runs_end_leaves after update of completed_at on agent_runs
  for each statement execute function muster.end_leaves();

-- Adds usage to a run whose flow run has ended. If the run has ended too, the flow run above it has counted its usage.
create function muster.add_usage_above(
  run uuid, tokens_in bigint, tokens_out bigint, cost double precision, is_estimated boolean
) returns void language plpgsql as $$
declare
  has_ended boolean;
begin
  update agent_runs set
    input_tokens = input_tokens + tokens_in,
    output_tokens = output_tokens + tokens_out,
    cost_usd = case when cost is null then cost_usd else coalesce(cost_usd, 0) + cost end,
    usage_estimated = usage_estimated or is_estimated,
    changed_in = pg_current_xact_id()
  where id = run
  returning completed_at is not null into has_ended;
  if has_ended then
    perform muster.add_usage(l.flow_run_id, l.task_id, l.is_below, tokens_in, tokens_out, cost, is_estimated)
    from muster.leaf_of_run(run) l where l.flow_run_id is not null;
  end if;
end $$;

create or replace function muster.add_usage(
  flow_run uuid, leaf text, is_below boolean,
  tokens_in bigint, tokens_out bigint, cost double precision, is_estimated boolean
) returns void language plpgsql as $$
declare
  above uuid;
  has_ended boolean;
begin
  update flow_runs set
    input_tokens = input_tokens + tokens_in,
    output_tokens = output_tokens + tokens_out,
    cost_usd = case when cost is null then cost_usd else coalesce(cost_usd, 0) + cost end,
    usage_estimated = usage_estimated or is_estimated,
    changed_in = case when completed_at is null then changed_in else pg_current_xact_id() end
  where id = flow_run
  returning parent_run_id, completed_at is not null into above, has_ended;
  if not found then
    return;
  end if;
  if is_below and leaf is not null then
    perform muster.add_leaf_usage(flow_run, leaf, tokens_in, tokens_out, cost, is_estimated);
  end if;
  if above is not null and has_ended then
    perform muster.add_usage_above(above, tokens_in, tokens_out, cost, is_estimated);
  end if;
end $$;

create or replace function muster.tell_flows_of_run() returns trigger language plpgsql as $$
declare
  has_ended boolean := new.completed_at is not null and old.completed_at is null;
  has_used boolean := new.input_tokens + new.output_tokens > 0;
  is_below boolean := new.ancestors <> '{}';
  waits boolean := muster.run_waits_for_person(new);
  noted text;
begin
  if new.changed_in is not distinct from old.changed_in then
    update agent_runs set changed_in = pg_current_xact_id() where id = new.id;
  end if;
  if has_ended and has_used and is_below then
    perform muster.add_usage(l.flow_run_id, l.task_id, true,
      new.input_tokens, new.output_tokens, new.cost_usd, new.usage_estimated)
    from muster.leaf_of_run(new.id) l where l.flow_run_id is not null;
  end if;
  if has_ended and new.flow_run_id is not null then
    noted := coalesce(current_setting('muster.ended_leaves', true), '');
    perform set_config('muster.ended_leaves', case when noted = '' then '' else noted || ',' end
      || json_build_object('flow_run_id', new.flow_run_id,
        'tokens_in', new.input_tokens, 'tokens_out', new.output_tokens,
        'cost', case when has_used then new.cost_usd end, 'is_estimated', has_used and new.usage_estimated), true);
  end if;
  -- A run that ends, however it ends, takes the flow run down that it has started. Runs are locked before flow runs.
  if has_ended and new.started_flow_run_id is not null then
    update flow_runs set cancel_requested_at = muster.now(), changed_in = pg_current_xact_id(),
      ready_at = case when owner is null then muster.now() else ready_at end
    where id = new.started_flow_run_id and completed_at is null and cancel_requested_at is null;
    if found then
      perform pg_notify('muster_flow', new.started_flow_run_id::text);
    end if;
  end if;
  if (new.flow_run_id is not null or is_below) and waits <> muster.run_waits_for_person(old) then
    perform muster.note_leaf_wait(l.flow_run_id, l.task_id, new.id, waits)
    from muster.leaf_of_run(new.id) l where l.flow_run_id is not null and l.task_id is not null;
  end if;
  return null;
end $$;
