-- Flows whose leaves are flows again: waits for people, tokens and runs count at every level.

-- The leaf that the run is, or is below: its flow run, its id there, and whether the run is below it.
create function muster.leaf_of_run(run uuid, out flow_run_id uuid, out task_id text, out is_below boolean)
language sql stable as $$
  select l.flow_run_id, l.trigger->>'task_id', l.id <> r.id
  from agent_runs r join agent_runs l on l.id = coalesce(r.ancestors[1], r.id) and l.flow_run_id is not null
  where r.id = run
$$;

-- Adds the usage of a call to the leaf's flow run. A leaf shows the usage of its own run anyway, so `is_below` tells
-- whether the call was made elsewhere. A run that waits for a flow run takes over the usage of the flow run when that
-- ends, and the end of a run adds the run's usage to the flow run above. If a flow run and its run have both ended, the
-- loop adds the usage to the flow run above, and so on.
create function muster.add_usage(
  flow_run uuid, leaf text, is_below boolean,
  tokens_in bigint, tokens_out bigint, cost double precision, is_estimated boolean
) returns void language plpgsql as $$
declare
  above uuid;
  has_ended boolean;
begin
  loop
    update flow_runs set
      input_tokens = input_tokens + tokens_in,
      output_tokens = output_tokens + tokens_out,
      cost_usd = case when cost is null then cost_usd else coalesce(cost_usd, 0) + cost end,
      usage_estimated = usage_estimated or is_estimated
    where id = flow_run
    returning parent_run_id, completed_at is not null into above, has_ended;
    exit when not found;
    if is_below and leaf is not null then
      perform muster.add_leaf_usage(flow_run, leaf, tokens_in, tokens_out, cost, is_estimated);
    end if;
    exit when above is null or not has_ended;
    update agent_runs set
      input_tokens = input_tokens + tokens_in,
      output_tokens = output_tokens + tokens_out,
      cost_usd = case when cost is null then cost_usd else coalesce(cost_usd, 0) + cost end,
      usage_estimated = usage_estimated or is_estimated
    where id = above
    returning completed_at is not null into has_ended;
    exit when not found or not has_ended;
    select l.flow_run_id, l.task_id, l.is_below into flow_run, leaf, is_below from muster.leaf_of_run(above) l;
    exit when flow_run is null;
  end loop;
end $$;

create or replace function muster.count_ended_leaf() returns trigger language plpgsql as $$
begin
  perform muster.leaf_has_ended(new.flow_run_id);
  if new.input_tokens + new.output_tokens > 0 then
    perform muster.add_usage(new.flow_run_id, null, false,
      new.input_tokens, new.output_tokens, new.cost_usd, new.usage_estimated);
  end if;
  return null;
end $$;

create or replace function muster.count_usage_below_leaf() returns trigger language plpgsql as $$
begin
  perform muster.add_usage(l.flow_run_id, l.task_id, true,
    new.input_tokens, new.output_tokens, new.cost_usd, new.usage_estimated)
  from muster.leaf_of_run(new.id) l where l.flow_run_id is not null;
  return null;
end $$;
drop function muster.add_flow_usage;

-- The leaves that wait for a person: the number of their runs, sub-runs included, that do.
create table flow_leaf_waits (
  flow_run_id uuid not null references flow_runs on delete cascade,
  task_id text not null,
  runs integer not null
);
create unique index flow_leaf_waits_of_leaf on flow_leaf_waits (flow_run_id, md5(task_id));

-- `people_waits` is the number of leaves that wait for a person now. `waited` is the time in which every leaf under way
-- waited, up to `all_wait_since`, the instant since which that is so; null: a leaf is at work.
alter table flow_runs
  add column all_wait_since timestamptz,
  -- The instant at which the flow run was parked because its project was halted. The next claim adds the time to `waited`.
  add column halted_since timestamptz,
  -- On the uppermost flow run of a tree: the number of runs of leaves in the flow runs below it.
  add column runs_below integer not null default 0;

-- The instant since which the run of a task waits for tokens while its flow run is under way; null: it does not wait.
alter table agent_runs add column tokens_wait_since timestamptz;

create function muster.note_standstill() returns trigger language plpgsql as $$
declare
  stands_still boolean := new.completed_at is null and new.people_waits > 0
    and new.people_waits >= coalesce((new.progress->>'running')::int, 0);
begin
  if old.all_wait_since is not null and not stands_still then
    new.waited := old.waited
      + extract(epoch from coalesce(new.completed_at, muster.now()) - old.all_wait_since) * 1000;
    new.all_wait_since := null;
    -- The flow run has as much more time as it waited. Its next owner counts anew.
    if new.owner is null and new.completed_at is null and new.ready_at is null then
      new.ready_at := muster.now();
    end if;
  elsif old.all_wait_since is null and stands_still then
    new.all_wait_since := muster.now();
  end if;
  return new;
end $$;
create trigger flow_runs_standstill before update on flow_runs for each row
  when (new.people_waits > 0 or old.people_waits > 0)
  execute function muster.note_standstill();

-- A run of the leaf begins to wait for a person, or waits no longer; the journal of the flow run tells it. An answer may
-- come when the flow run is late already, so the flow run is looked at then.
create function muster.note_leaf_wait(flow_run uuid, leaf text, run uuid, waits boolean)
returns void language plpgsql as $$
declare
  waiting integer;
  told_seq bigint;
begin
  perform from flow_runs where id = flow_run for no key update;
  if not found then
    return;
  end if;
  if waits then
    insert into flow_leaf_waits as w (flow_run_id, task_id, runs) values (flow_run, leaf, 1)
    on conflict (flow_run_id, md5(task_id)) do update set runs = w.runs + 1 returning runs into waiting;
  else
    update flow_leaf_waits set runs = runs - 1 where flow_run_id = flow_run and md5(task_id) = md5(leaf)
    returning runs into waiting;
    delete from flow_leaf_waits where flow_run_id = flow_run and md5(task_id) = md5(leaf) and runs <= 0;
  end if;
  update flow_runs set
    people_waits = greatest(0, people_waits
      + case when waits and waiting = 1 then 1 when not waits and waiting = 0 then -1 else 0 end),
    last_seq = last_seq + (completed_at is null)::int,
    check_at = case when check_at is null or waits then check_at else muster.now() end
  where id = flow_run
  returning case when completed_at is null then last_seq end into told_seq;
  if told_seq is not null then
    insert into flow_events (run_id, seq, id, kind, data) values (flow_run, told_seq, gen_random_uuid(),
      case when waits then 'task.waiting' else 'task.continued' end,
      jsonb_build_object('task_id', leaf, 'run_id', run));
  end if;
end $$;

create or replace function muster.note_wait_for_person() returns trigger language plpgsql as $$
begin
  perform muster.note_leaf_wait(l.flow_run_id, l.task_id, new.id,
    new.status = 'paused' and coalesce(new.pause_reason, '') = 'human' and new.completed_at is null)
  from muster.leaf_of_run(new.id) l where l.flow_run_id is not null and l.task_id is not null;
  return null;
end $$;

-- A flow run that waits for people alone is a leaf that waits, where its run is a leaf of another flow run.
create function muster.note_wait_above() returns trigger language plpgsql as $$
begin
  perform muster.note_leaf_wait(l.flow_run_id, l.task_id, new.parent_run_id, new.all_wait_since is not null)
  from muster.leaf_of_run(new.parent_run_id) l where l.flow_run_id is not null and l.task_id is not null;
  return null;
end $$;
create trigger flow_runs_wait_above after update on flow_runs for each row
  when (new.parent_run_id is not null and (new.all_wait_since is null) <> (old.all_wait_since is null))
  execute function muster.note_wait_above();

-- The flow runs that wait for people now.
insert into flow_leaf_waits (flow_run_id, task_id, runs)
select run_id, data->>'task_id',
  count(*) filter (where kind = 'task.waiting') - count(*) filter (where kind = 'task.continued')
from flow_events
where run_id in (select id from flow_runs where status = 'running' and people_waits > 0)
  and kind in ('task.waiting', 'task.continued')
group by 1, 2
having count(*) filter (where kind = 'task.waiting') > count(*) filter (where kind = 'task.continued');
update flow_runs f set
  waited = (muster.flow_wait(f.id)).waited,
  people_waits = (select count(*) from flow_leaf_waits w where w.flow_run_id = f.id)
where status = 'running' and people_waits > 0;
drop function muster.flow_wait;

-- The off switch makes the runs ready that wait for their flow runs, so that they pause and say why. A project that is
-- deleted is halted, too, but its runs say nothing any more.
create function muster.halt_flow_agents() returns trigger language plpgsql as $$
begin
  update agent_runs set ready_at = muster.now() where id in (
    select id from agent_runs where project_id = new.id and status = 'running' and started_flow_run_id is not null
      and waits_for = 'children' and owner is null and ready_at is null and completed_at is null
    for no key update skip locked);
  return null;
end $$;
create trigger projects_halt_flow_agents after update of halted_at on projects for each row
  when (new.halted_at is not null and old.halted_at is null and new.deleted_at is null)
  execute function muster.halt_flow_agents();

-- The agents whose allocations the call is reserved from. The end of the call, however it ends, gives that back. The rows
-- of the agents are locked in the order of their ids, as by all others.
alter table project_calls add column payers uuid[] not null default '{}';
create function muster.end_project_calls() returns trigger language plpgsql as $$
begin
  perform from agent_tokens where agent_id in (select unnest(payers) from ended)
  order by agent_id for no key update;
  update agent_tokens t set reserved = t.reserved - e.bound
  from (select payer, sum(bound) as bound from ended, unnest(payers) as payer group by payer) e
  where t.agent_id = e.payer;
  return null;
end $$;
create trigger project_calls_end after delete on project_calls referencing old table as ended
  for each statement execute function muster.end_project_calls();

-- The attempt at a task of this agent that the flow run is part of; null if there is none.
create function muster.attempt_above(flow_run uuid, payer uuid) returns uuid language sql stable as $$
  with recursive above (run_id, flow_run_id) as (
    select f.parent_run_id, (muster.leaf_of_run(f.parent_run_id)).flow_run_id
    from flow_runs f where f.id = flow_run and f.parent_run_id is not null
    union all
    select f.parent_run_id, (muster.leaf_of_run(f.parent_run_id)).flow_run_id
    from above a join flow_runs f on f.id = a.flow_run_id where f.parent_run_id is not null
  )
  select r.id from above a join agent_runs r on r.id = a.run_id
  where r.agent_id = payer and r.task_id is not null and r.completed_at is null limit 1
$$;

-- The runs that have not ended below a flow run, at every level, with the flow runs that they have started.
create function muster.runs_below_flow(flow_run uuid) returns table (id uuid, started_flow_run_id uuid)
language sql stable as $$
  with recursive below (id, started) as (
    select r.id, r.started_flow_run_id from agent_runs r
    where r.flow_run_id = flow_run and r.status in ('queued', 'running', 'paused') and r.completed_at is null
    union all
    select n.id, n.started_flow_run_id from below b cross join lateral (
      select r.id, r.started_flow_run_id from agent_runs r
      where r.parent_run_id = b.id and r.status in ('queued', 'running', 'paused') and r.completed_at is null
      union all
      select r.id, r.started_flow_run_id from agent_runs r
      where r.flow_run_id = b.started and r.status in ('queued', 'running', 'paused') and r.completed_at is null
    ) n
  )
  select b.id, b.started from below b
$$;
