-- The release of an off switch is one statement with the checks of flow runs that it brings forward. Only the thousand
-- oldest are brought forward, so that the switch is released at once, whatever number of flow runs is under way. The
-- others are looked at when they have been under way a tenth longer, as all are.
create or replace function muster.check_flow_runs() returns trigger language plpgsql as $$
begin
  update flow_runs set check_at = muster.now() where id in (
    select id from flow_runs where project_id = new.id and status = 'running' and check_at is not null
    order by created_at, id limit 1000 for no key update skip locked);
  return null;
end $$;
