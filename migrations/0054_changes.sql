-- The feed of changes (api/feed) finds the rows that changed by the transaction that changed them: commits come in
-- another order than times, but a snapshot tells which transactions it has seen. A row has the transaction that last
-- changed what lists show of it; rows that were written before this migration have none.
--
-- A statement that works on runs or flow runs sets the column itself, and only where it changes an indexed column
-- anyway: an append that only counts leaves it alone, so that such updates stay within their page.
alter table agent_runs add column changed_in xid8;
alter table agent_runs alter column changed_in set default pg_current_xact_id();
alter table flow_runs add column changed_in xid8;
alter table flow_runs alter column changed_in set default pg_current_xact_id();
alter table objects add column changed_in xid8;
alter table objects alter column changed_in set default pg_current_xact_id();
alter table flow_alerts add column changed_in xid8;
alter table flow_alerts alter column changed_in set default pg_current_xact_id();
alter table agent_messages add column changed_in xid8;
alter table agent_messages alter column changed_in set default pg_current_xact_id();
-- Tasks and agents have no instant of their last change.
alter table tasks add column changed_in xid8, add column changed_at timestamptz;
alter table tasks alter column changed_in set default pg_current_xact_id(),
  alter column changed_at set default muster.now();
alter table agents add column changed_in xid8, add column changed_at timestamptz;
alter table agents alter column changed_in set default pg_current_xact_id(),
  alter column changed_at set default muster.now();

-- Many statements change tasks and agents, a few times in the life of each.
create function muster.note_change() returns trigger language plpgsql as $$
begin
  new.changed_in := pg_current_xact_id();
  new.changed_at := muster.now();
  return new;
end $$;
create trigger tasks_changed before update on tasks for each row execute function muster.note_change();
create trigger agents_changed before update on agents for each row execute function muster.note_change();

-- A status that changed in a statement which does not set the column, such as one of an older release.
create or replace function muster.tell_flows_of_run() returns trigger language plpgsql as $$
declare
  has_ended boolean := new.completed_at is not null and old.completed_at is null;
  has_used boolean := new.input_tokens + new.output_tokens > 0;
  is_below boolean := new.ancestors <> '{}';
  waits boolean := muster.run_waits_for_person(new);
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
    perform muster.leaf_has_ended(new.flow_run_id);
    if has_used then
      perform muster.add_usage(new.flow_run_id, null, false,
        new.input_tokens, new.output_tokens, new.cost_usd, new.usage_estimated);
    end if;
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

drop trigger agent_runs_flows on agent_runs;
create trigger agent_runs_flows after update of status, completed_at on agent_runs for each row
  when ((old.status <> new.status and new.changed_in is not distinct from old.changed_in)
    or (((old.completed_at is null) <> (new.completed_at is null) or old.pause_reason is distinct from new.pause_reason
        or (old.status = 'paused') <> (new.status = 'paused'))
      and (new.flow_run_id is not null or new.started_flow_run_id is not null or new.ancestors <> '{}')))
  execute function muster.tell_flows_of_run();

create function muster.note_flow_change() returns trigger language plpgsql as $$
begin
  update flow_runs set changed_in = pg_current_xact_id() where id = new.id;
  return null;
end $$;
create trigger flow_runs_changed after update of status on flow_runs for each row
  when (old.status <> new.status and new.changed_in is not distinct from old.changed_in)
  execute function muster.note_flow_change();

-- Usage that comes after the end changes a row that no statement will write again.
create or replace function muster.add_usage(
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
      usage_estimated = usage_estimated or is_estimated,
      changed_in = case when completed_at is null then changed_in else pg_current_xact_id() end
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
      usage_estimated = usage_estimated or is_estimated,
      changed_in = pg_current_xact_id()
    where id = above
    returning completed_at is not null into has_ended;
    exit when not found or not has_ended;
    select l.flow_run_id, l.task_id, l.is_below into flow_run, leaf, is_below from muster.leaf_of_run(above) l;
    exit when flow_run is null;
  end loop;
end $$;
