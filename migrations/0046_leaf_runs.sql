-- The usage of a leaf beyond the runs of its own: the calls that functions called muster.* make of the project's model,
-- and sub-runs that have ended. The usage of the leaf's runs stands in their rows.
create table flow_leaf_usage (
  flow_run_id uuid not null references flow_runs on delete cascade,
  task_id text not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cost_usd double precision,
  usage_estimated boolean not null
);
-- The id of a leaf may be longer than an index takes.
create unique index flow_leaf_usage_of_leaf on flow_leaf_usage (flow_run_id, md5(task_id));

create function muster.add_leaf_usage(
  flow_run uuid, leaf text, tokens_in bigint, tokens_out bigint, cost double precision, is_estimated boolean
) returns void language sql as $$
  insert into flow_leaf_usage as u (flow_run_id, task_id, input_tokens, output_tokens, cost_usd, usage_estimated)
  values (flow_run, leaf, tokens_in, tokens_out, cost, is_estimated)
  on conflict (flow_run_id, md5(task_id)) do update set
    input_tokens = u.input_tokens + excluded.input_tokens,
    output_tokens = u.output_tokens + excluded.output_tokens,
    cost_usd = case when excluded.cost_usd is null then u.cost_usd else coalesce(u.cost_usd, 0) + excluded.cost_usd end,
    usage_estimated = u.usage_estimated or excluded.usage_estimated
$$;

create function muster.add_flow_usage(
  flow_run uuid, tokens_in bigint, tokens_out bigint, cost double precision, is_estimated boolean
) returns boolean language plpgsql as $$
begin
  update flow_runs set
    input_tokens = input_tokens + tokens_in,
    output_tokens = output_tokens + tokens_out,
    cost_usd = case when cost is null then cost_usd else coalesce(cost_usd, 0) + cost end,
    usage_estimated = usage_estimated or is_estimated
  where id = flow_run;
  return found;
end $$;

create or replace function muster.count_ended_leaf() returns trigger language plpgsql as $$
begin
  perform muster.leaf_has_ended(new.flow_run_id);
  if new.input_tokens + new.output_tokens > 0 then
    perform muster.add_flow_usage(
      new.flow_run_id, new.input_tokens, new.output_tokens, new.cost_usd, new.usage_estimated);
  end if;
  return null;
end $$;

-- The usage of a sub-run counts for the leaf that it is part of, and for the flow run of the leaf.
create function muster.count_usage_below_leaf() returns trigger language plpgsql as $$
declare
  leaf record;
begin
  for leaf in
    select flow_run_id, trigger->>'task_id' as task_id from agent_runs
    where id = any(new.ancestors) and flow_run_id is not null order by flow_run_id
  loop
    if muster.add_flow_usage(
      leaf.flow_run_id, new.input_tokens, new.output_tokens, new.cost_usd, new.usage_estimated)
    then
      perform muster.add_leaf_usage(
        leaf.flow_run_id, leaf.task_id, new.input_tokens, new.output_tokens, new.cost_usd, new.usage_estimated);
    end if;
  end loop;
  return null;
end $$;
create trigger agent_runs_below_leaf after update of status on agent_runs for each row
  when (new.ancestors <> '{}' and new.completed_at is not null and old.completed_at is null
    and new.input_tokens + new.output_tokens > 0)
  execute function muster.count_usage_below_leaf();

alter table flow_runs
  -- The number of runs of its leaves, sub-runs included, that wait for a person now.
  add column people_waits integer not null default 0,
  -- Milliseconds in which every leaf under way waited for a person, up to the last answer.
  add column waited double precision not null default 0;

-- The time of a flow run in which every leaf under way waited for a person, in milliseconds, and whether that is so now.
create function muster.flow_wait(flow_run uuid, out waited double precision, out is_waiting boolean)
language sql stable as $$
  with told as (
    select seq, at, data->>'task_id' as leaf,
      count(*) filter (where kind = 'task.started') over earlier
        > count(*) filter (where kind in ('task.completed', 'task.failed', 'task.skipped')) over earlier as is_open,
      count(*) filter (where kind = 'task.waiting') over earlier
        > count(*) filter (where kind = 'task.continued') over earlier as is_waiting
    from flow_events
    where run_id = flow_run and kind in ('task.started', 'task.waiting', 'task.continued', 'task.completed',
      'task.failed', 'task.skipped')
    window earlier as (partition by data->>'task_id' order by seq)
  ), steps as (
    select seq, at, is_open::int - coalesce(lag(is_open) over of_leaf, false)::int as opened,
      (is_open and is_waiting)::int - coalesce(lag(is_open and is_waiting) over of_leaf, false)::int as began_to_wait
    from told window of_leaf as (partition by leaf order by seq)
  ), counted as (
    select at, sum(opened) over (order by seq) as open, sum(began_to_wait) over (order by seq) as waiting,
      lead(at) over (order by seq) as next_at
    from steps
  )
  select
    coalesce(sum(extract(epoch from coalesce(next_at, ended.at) - counted.at) * 1000)
      filter (where waiting > 0 and waiting >= open), 0)::double precision,
    coalesce(bool_or(next_at is null and waiting > 0 and waiting >= open), false)
  from counted, (select coalesce(completed_at, muster.now()) as at from flow_runs where id = flow_run) as ended
$$;

-- A run that begins to wait for a person, or waits no longer, is told in the journal of each flow run that it is part
-- of. An answer may come when the flow run is late already, so the flow run is looked at then.
create function muster.note_wait_for_person() returns trigger language plpgsql as $$
declare
  leaf record;
  told_seq bigint;
  waits boolean := new.status = 'paused' and coalesce(new.pause_reason, '') = 'human' and new.completed_at is null;
begin
  for leaf in
    select flow_run_id, trigger->>'task_id' as task_id from agent_runs
    where id = any(new.id || new.ancestors) and flow_run_id is not null order by flow_run_id
  loop
    update flow_runs set
      people_waits = greatest(0, people_waits + case when waits then 1 else -1 end),
      last_seq = last_seq + (completed_at is null)::int,
      check_at = case when check_at is null or waits then check_at else muster.now() end
    where id = leaf.flow_run_id
    returning case when completed_at is null then last_seq end into told_seq;
    if told_seq is not null then
      insert into flow_events (run_id, seq, id, kind, data) values (leaf.flow_run_id, told_seq, gen_random_uuid(),
        case when waits then 'task.waiting' else 'task.continued' end,
        jsonb_build_object('task_id', leaf.task_id, 'run_id', new.id));
    end if;
    if not waits then
      update flow_runs set waited = (muster.flow_wait(id)).waited where id = leaf.flow_run_id;
    end if;
  end loop;
  return null;
end $$;
create trigger agent_runs_wait_for_person after update of status on agent_runs for each row
  when ((new.flow_run_id is not null or new.ancestors <> '{}')
    and (new.status = 'paused' and coalesce(new.pause_reason, '') = 'human' and new.completed_at is null)
      <> (old.status = 'paused' and coalesce(old.pause_reason, '') = 'human' and old.completed_at is null))
  execute function muster.note_wait_for_person();

-- The time that the flow run had been under way when the alert was made, in milliseconds, without waits for people.
alter table flow_alerts add column elapsed double precision;
