-- The waits that the journal of a run does not tell: all leaves of a flow run waited (`flow_run_id`), or no live process had
-- the tools of a run (`run_id`). The run that such a flow run works for does not work meanwhile, either.
create table run_rests (
  run_id uuid references agent_runs on delete cascade,
  flow_run_id uuid references flow_runs on delete cascade,
  began timestamptz not null default muster.now(),
  ended timestamptz,
  check ((run_id is null) <> (flow_run_id is null))
);
create index run_rests_of_run on run_rests (run_id) where run_id is not null;
create index run_rests_of_flow on run_rests (flow_run_id) where flow_run_id is not null;

-- True while a run waits for runs below it that all waited when it looked: a run below that continues wakes it.
alter table agent_runs add column stands_still boolean not null default false;

insert into run_rests (flow_run_id, began)
select id, all_wait_since from flow_runs
where status = 'running' and all_wait_since is not null and parent_run_id is not null;
insert into run_rests (run_id, began)
select id, tool_wait_since from agent_runs
where waits_for = 'tool' and tool_wait_since is not null and (ancestors <> '{}' or entry_id is not null);

-- The one answer to the question whether everything below a run waits, and since when: the time since `since` in which a
-- run of the tree worked, each instant counted once, and whether one works now. With `is_included` the run itself counts.
-- A run works from its beginning to its end, also while it waits for a slot, except in its waits: those of its journal,
-- and those in run_rests. A run that waits for runs below it does not work; those runs do. A run that waits for its flow
-- run works as long as that one does not stand still. An event that another run wrote is not the run's own.
create function muster.work_of_runs(top uuid, since timestamptz, is_included boolean,
  out ms double precision, out goes_on boolean)
language sql stable as $$
  with recursive tree (id, began, ended, flow_run_id) as (
    select r.id, r.created_at, r.completed_at, r.started_flow_run_id from agent_runs r where r.id = top
    union
    select r.id, r.created_at, r.completed_at, r.started_flow_run_id
    from tree t join agent_runs r on r.parent_run_id = t.id
    where r.completed_at is null or r.completed_at > since
  ), lives as (
    select id, flow_run_id, tstzrange(greatest(began, since),
      greatest(began, since, least(coalesce(ended, muster.now()), muster.now()))) as life,
      ended is null as is_open
    from tree where is_included or id <> top
  ), rests as (
    select l.id, e.at as began, (
      select n.at from run_events n where n.run_id = e.run_id and n.seq > e.seq and n.origin_seq is null
        and not n.data ? 'run_id' order by n.seq limit 1) as ended
    from lives l join run_events e on e.run_id = l.id
    where e.origin_seq is null and not e.data ? 'run_id'
      and (e.kind = 'run.paused' or (e.kind = 'run.parked' and e.data->>'waits_for' = 'children'))
    union all
    select l.id, w.began, w.ended from lives l join run_rests w on w.run_id = l.id
    union all
    select l.id, w.began, w.ended from lives l join run_rests w on w.flow_run_id = l.flow_run_id
  ), rested as (
    select id, range_agg(tstzrange(began, case when ended is not null then greatest(began, ended) end)) as times,
      bool_or(ended is null) as goes_on
    from rests group by id
  ), worked as (
    select tstzmultirange(l.life) - coalesce(r.times, '{}') as times, l.is_open and r.goes_on is not true as goes_on
    from lives l left join rested r using (id)
  )
  select coalesce((
      select sum(extract(epoch from upper(t) - lower(t)) * 1000)
      from unnest((select range_agg(times) from worked)) as t), 0)::double precision,
    coalesce((select bool_or(goes_on) from worked), false)
$$;

create or replace function muster.note_standstill() returns trigger language plpgsql as $$
declare
  now_is flow_runs;
  stands_still boolean;
begin
  select * into now_is from flow_runs where id = new.id;
  stands_still := now_is.completed_at is null and now_is.people_waits > 0
    and now_is.people_waits >= coalesce((now_is.progress->>'running')::int, 0);
  if stands_still is not distinct from (now_is.all_wait_since is not null) then
    return null;
  end if;
  if stands_still then
    update flow_runs set all_wait_since = muster.now() where id = new.id;
  else
    -- The flow run has as much more time as it waited. Its next owner counts anew.
    update flow_runs set all_wait_since = null,
      waited = waited + extract(epoch from coalesce(completed_at, muster.now()) - all_wait_since) * 1000,
      ready_at = case when owner is null and completed_at is null and ready_at is null then muster.now()
        else ready_at end
    where id = new.id;
  end if;
  if now_is.parent_run_id is not null then
    if stands_still then
      insert into run_rests (flow_run_id) values (new.id);
    else
      update run_rests set ended = muster.now() where flow_run_id = new.id and ended is null;
    end if;
    -- A flow run that waits for people alone is a leaf that waits, where its run is a leaf of another flow run.
    perform muster.note_leaf_wait(l.flow_run_id, l.task_id, now_is.parent_run_id, stands_still)
    from muster.leaf_of_run(now_is.parent_run_id) l where l.flow_run_id is not null and l.task_id is not null;
  end if;
  return null;
end $$;

create or replace function muster.tell_flows_of_run() returns trigger language plpgsql as $$
declare
  has_ended boolean := new.completed_at is not null and old.completed_at is null;
  has_used boolean := new.input_tokens + new.output_tokens > 0;
  is_below boolean := new.ancestors <> '{}';
  waits boolean := muster.run_waits_for_person(new);
  lacks_tool boolean := coalesce(new.waits_for, '') = 'tool';
  noted text;
begin
  if new.changed_in is not distinct from old.changed_in then
    update agent_runs set changed_in = pg_current_xact_id() where id = new.id;
  end if;
  if (is_below or new.entry_id is not null) and lacks_tool <> (coalesce(old.waits_for, '') = 'tool') then
    if lacks_tool then
      insert into run_rests (run_id) values (new.id);
    else
      update run_rests set ended = muster.now() where run_id = new.id and ended is null;
    end if;
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
