-- no transaction
-- The items that a pipeline has given up are read with its task, whatever else the flow run has written.
create index concurrently flow_events_skipped on flow_events (run_id, (data->>'task_id'), seq) where kind = 'items.skipped';
