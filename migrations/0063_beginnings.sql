-- no transaction
-- The search finds tasks, runs and flow runs by the beginning of their title or input, however old they are. The order
-- is that of the bytes, so a text that is equal to the sought one comes before those that only begin with it. The search
-- spells the expression in the same way (db/search-rows.ts).
create index concurrently tasks_by_beginning on tasks
  (project_id, (ltrim(regexp_replace(lower(left(title, 100)), '\s+', ' ', 'g'))) collate "C", created_at desc);
-- A run is written many times and ends once, so only ended runs have an entry. Nobody types the beginning of a JSON
-- object, so only inputs that are texts have one.
create index concurrently agent_runs_by_beginning on agent_runs
  (project_id, (ltrim(regexp_replace(lower(left(input #>> '{}', 100)), '\s+', ' ', 'g'))) collate "C", created_at desc)
  where completed_at is not null and jsonb_typeof(input) = 'string';
create index concurrently flow_runs_by_beginning on flow_runs
  (project_id, (ltrim(regexp_replace(lower(left(input #>> '{}', 100)), '\s+', ' ', 'g'))) collate "C", created_at desc)
  where completed_at is not null and jsonb_typeof(input) = 'string';
