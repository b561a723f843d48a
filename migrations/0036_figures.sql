-- no transaction
-- The figures of the organisation are counted by indexes that hold what is open, never what has ended.

create index concurrently tasks_open on tasks (kind, status, created_at) where completed_at is null;
create index concurrently agents_by_status on agents (status) where deleted_at is null;
-- A row enters when a mark is crossed and leaves with a top-up. A charge changes no column of this index.
create index concurrently agent_tokens_marked on agent_tokens (mark) where mark > 0;
