-- no transaction
-- Tables that may be large are read and written while these indexes are made.

-- Home shows the newest runs and flow runs that failed or stopped. Only those have an entry, which is made once, at
-- their end. The statements spell the conditions in the same way (runs-of-home.ts and flow-runs-of-home.ts in flows/history/).
create index concurrently agent_runs_stopped on agent_runs (project_id, completed_at desc, id desc)
  where parent_run_id is null and flow_run_id is null and (status = 'failed'
    or (status = 'paused' and pause_reason in ('step_limit', 'timeout', 'context', 'budget', 'unavailable')));
create index concurrently flow_runs_failed on flow_runs (project_id, completed_at desc, id desc)
  where status in ('failed', 'timed_out');
