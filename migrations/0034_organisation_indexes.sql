-- no transaction
-- Tables that may be large are read and written while these indexes are made.

-- An agent takes the most urgent of its tasks, and of those the oldest.
create index concurrently tasks_to_take on tasks (assigned_to, muster.rank_of(priority) desc, created_at, id)
  where status = 'pending' and kind = 'work' and assigned_to is not null and waits_for is null;
-- The next time at which one of them is tried again.
create index concurrently tasks_to_retry on tasks (assigned_to, retry_at)
  where status = 'pending' and kind = 'work' and waits_for is null and retry_at is not null;
create index concurrently tasks_made_by_agents on tasks ((created_by->>'id'), created_at desc, id desc)
  where created_by->>'type' = 'agent';
create index concurrently tasks_in_hand on tasks (assigned_to)
  where status in ('in-progress', 'blocked') and assigned_to is not null;
create index concurrently tasks_of_attempt on tasks (attempt_run_id)
  where attempt_run_id is not null and completed_at is null;
create index concurrently agent_runs_at_work on agent_runs (project_id, agent_id)
  where task_id is not null and (status in ('queued', 'running') or (status = 'paused' and ready_at is not null));
create index concurrently agent_runs_of_task on agent_runs (task_id, created_at desc, id desc) where task_id is not null;
-- Runs that wait for the next month, or for a higher limit of their project.
create index concurrently agent_runs_of_month on agent_runs (project_id, id) where waits_for = 'month';
create index concurrently agent_runs_to_settle on agent_runs (id)
  where is_task_open and (status in ('completed', 'failed', 'cancelled')
    or (status = 'paused' and pause_reason in ('stopped', 'step_limit', 'timeout', 'context'))
    or (status = 'paused' and waits_for = 'allocation'));
