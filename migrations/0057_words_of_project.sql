-- no transaction
-- The words of a project's objects: the index compares the project, too, so the objects of others are not read. The
-- project is a list of one, because this kind of index has no order for a plain id.
create index concurrently objects_words_of_project on objects using gin (words, (array[project_id]))
  where deleted_at is null;
drop index concurrently objects_words;
