-- What every process asks again and again is found by indexes that hold nothing else, however much has ended or waits.

-- When somebody should look whether the flow run takes too long: null before it starts, once people were told, and after
-- its end. Every running flow run was looked at every second before, parked ones too.
alter table flow_runs add column check_at timestamptz;
update flow_runs set check_at = muster.now() where status = 'running';
drop index flow_runs_running;
create index flow_runs_to_check on flow_runs (check_at) where check_at is not null;

-- A factor that changes, or an off switch that is released, may make flow runs late now. Rows that somebody is writing
-- are left out: these are looked at when they have been under way a tenth longer, as all are.
create function muster.check_flow_runs() returns trigger language plpgsql as $$
begin
  update flow_runs set check_at = muster.now() where id in (
    select id from flow_runs where check_at is not null and project_id = new.id for no key update skip locked);
  return null;
end $$;
create trigger projects_check_flow_runs after update of settings, halted_at on projects for each row
  when (new.settings->'alert_factor' is distinct from old.settings->'alert_factor'
    or (new.halted_at is null and old.halted_at is not null))
  execute function muster.check_flow_runs();

-- An alert that was acked is repeated when the run has taken twice as long as it had when that one was made.
create function muster.check_again() returns trigger language plpgsql as $$
begin
  update flow_runs set check_at = started_at + 2 * (new.created_at - started_at)
  where id = new.flow_run_id and status = 'running';
  return null;
end $$;
create trigger flow_alerts_acked after update of acked_at on flow_alerts for each row
  when (new.acked_at is not null and old.acked_at is null) execute function muster.check_again();

-- Projects that do not keep everything.
create index projects_pruned on projects (id) where settings->>'run_retention_days' is not null;
-- Few projects have these settings. Without a count the planner takes them for nearly all and reads every project.
create statistics projects_settings on (settings->>'run_retention_days'), (settings->>'max_concurrent_runs') from projects;
