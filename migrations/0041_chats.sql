-- The chats of front ends: the newest run of each, whose answer a reader may pick up again. Chat ids are the front end's
-- own, and mean nothing outside their project.
create table chats (
  project_id uuid not null references projects on delete cascade,
  chat_id text collate "C" not null,
  -- No foreign key, as with events: it would cost every deletion of a run a check of its own.
  run_id uuid not null,
  -- The newest message, and the place in the journal of its run after which the answer begins: a message that is sent again
  -- gets the same answer.
  message uuid,
  after_seq bigint not null default 0,
  updated_at timestamptz not null default muster.now(),
  primary key (project_id, chat_id)
) with (fillfactor = 80);
create index chats_of_run on chats (run_id);

-- A chat goes with its newest run.
create function muster.delete_chats_of_runs() returns trigger language plpgsql as $$
begin
  delete from chats c using gone where c.run_id = gone.id;
  return null;
end $$;
create trigger agent_runs_chats after delete on agent_runs referencing old table as gone
  for each statement execute function muster.delete_chats_of_runs();
