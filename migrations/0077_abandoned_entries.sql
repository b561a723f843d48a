-- A cancelled run can be resumed, so an entry that was given up, and whose run was cancelled with it, goes along too.
create or replace function muster.take_entry_along() returns trigger language plpgsql as $$
begin
  update processing_log set
    status = 'processing', run_id = new.id, error_message = null, completed_at = null, working_since = null
  where id = new.entry_id and status in ('failed', 'abandoned')
    and (run_id = new.resumed_from or exists (
      select from agent_runs r where r.id = processing_log.run_id and r.base_run_id = new.resumed_from));
  return null;
end $$;
