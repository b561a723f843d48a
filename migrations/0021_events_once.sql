-- What a sub-run says is stored once. In the journal of an ancestor a row says whose event it is (data->'run_id') and under
-- which seq it stands in that run's own journal. Rows without one hold their data themselves: a run's own events, and
-- copies that were made before.
alter table run_events add column origin_seq bigint;
