-- no transaction
-- The retention keeps the last run of an open task, which the next attempt continues.
create index concurrently tasks_of_last_run on tasks (last_run_id) where last_run_id is not null and completed_at is null;
