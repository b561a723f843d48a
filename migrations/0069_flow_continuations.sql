-- A flow run that resumes another takes over its finished leaves. `key_scope` is the scope of the keys of its leaves:
-- that of the first flow run of the chain, or of the run that started it. Null means the flow run itself.
alter table flow_runs
  add column resumed_from uuid,
  add column key_scope text;
