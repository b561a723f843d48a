-- `key_scope` is the scope from which the keys of a run's calls are made: the task, the leaf, the first run of a chain, or
-- the call that spawned the run. Null means the run itself.
-- `waiting_for` names what a run waits for, in words for people; `wait_message` holds the provider's own words.
alter table agent_runs
  add column key_scope text,
  add column waiting_for text,
  add column wait_message text;
