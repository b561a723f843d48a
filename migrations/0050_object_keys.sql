-- no transaction

-- Objects are listed by key alone too; with their type they are found by objects_key.
create index concurrently objects_of_key on objects (project_id, key, created_at desc, id desc)
  where key is not null and deleted_at is null;
