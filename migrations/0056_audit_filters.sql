-- no transaction
-- The audit log is filtered by action and by actor, in a project and in the whole instance. The actions are few words of
-- our own, so a list of several merges the lists of each. Keys, agents and hooks act in one project only; people act in
-- many. Each kind of list spells the action in its own way, so that PostgreSQL takes the index that is meant: it may
-- otherwise read all entries of an action in the hope to meet the actor soon.
create index concurrently audit_log_by_action on audit_log (project_id, ((action || '') collate "C"), seq desc);
create index concurrently audit_log_of_action on audit_log ((substr(action, 1) collate "C"), seq desc);
create index concurrently audit_log_of_actor on audit_log (actor_id, action collate "C", seq desc);
create index concurrently audit_log_of_person on audit_log (project_id, actor_id, action collate "C", seq desc)
  where actor_type in ('user', 'instance_admin');
create index concurrently api_keys_of_name on api_keys (lower(name), created_at desc);
