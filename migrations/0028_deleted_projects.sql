-- A project that was deleted is not seen any more; its rows go in the background, and its own row last. Until then it is
-- halted, too: nothing goes on in it.
alter table projects add column deleted_at timestamptz;
create index projects_deleted on projects (deleted_at, id) where deleted_at is not null;
