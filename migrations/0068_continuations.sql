-- A retry of a task continues the run before it. `last_run_id` is the newest run of the task, whichever agent made it;
-- `attempt_run_id` is the run that works on the task now. `cleared_run_id` is the last run after which a person allowed
-- the work to begin anew. `is_resumed` says that a person asked for the next attempt.
alter table tasks
  add column last_run_id uuid,
  add column cleared_run_id uuid,
  add column is_resumed boolean not null default false,
  drop constraint tasks_waits_for_check,
  add constraint tasks_waits_for_check check (waits_for in ('subtasks', 'dependencies', 'begin_anew')) not valid;
