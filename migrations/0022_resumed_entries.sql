-- A run that goes on from one that worked on an entry of the processing log takes the entry along: it is processed again,
-- and ends as that run ends. An entry that was retried or given up meanwhile belongs to somebody else and stays. Of one
-- paused run a second continuation may be made where the first came to nothing: then the entry is at the first one.
create function muster.take_entry_along() returns trigger language plpgsql as $$
begin
  update processing_log set
    status = 'processing', run_id = new.id, error_message = null, completed_at = null, working_since = null
  where id = new.entry_id and status = 'failed'
    and (run_id = new.resumed_from or exists (
      select from agent_runs r where r.id = processing_log.run_id and r.base_run_id = new.resumed_from));
  return null;
end $$;
create trigger agent_runs_take_entry after insert on agent_runs for each row
  when (new.entry_id is not null and new.resumed_from is not null)
  execute function muster.take_entry_along();
