-- no transaction
-- Tables that may be large are read and written while this index is made.

-- Tasks that nobody is assigned to are for people. Without the index a page of them would read all tasks of agents.
create index concurrently tasks_for_people on tasks (project_id, kind, status, created_at desc, id desc)
  where assigned_to is null;
