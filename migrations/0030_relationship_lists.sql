-- no transaction

-- The relationships from and to an object are listed newest first, without those that were deleted. Whoever deletes an
-- object is asked for all of them, so the index holds the deleted ones too, apart from the others.
create index concurrently relationships_by_source on relationships
  (from_id, (deleted_at is null), created_at desc, id desc);
create index concurrently relationships_by_target on relationships
  (to_id, (deleted_at is null), created_at desc, id desc);
drop index concurrently relationships_from;
drop index concurrently relationships_into;
drop index concurrently relationships_to;
