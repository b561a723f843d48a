-- `require_approval` names the tools of an agent whose calls wait for a person.
-- `call` describes the call that a suggestion is about: its id in the run, its name to the model, and a hash of the input
-- schema that the tool had. `decided_by` is the one who approved or rejected it.
alter table agents add column require_approval text[] not null default '{}';
alter table tasks
  add column call jsonb,
  add column decided_by text;
