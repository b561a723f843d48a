-- Months, messages and the log of the organisation.

-- Model calls under way that no agent makes. Their upper bounds count for the month of their project as long as their
-- process lives. Only projects that limit their month have rows here.
create table project_calls (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  worker_id uuid not null,
  bound bigint not null
);
create index project_calls_of_project on project_calls (project_id);

-- The tokens of a month are the sum over all agents of the project, which is dear to read. So it is noted when it is
-- read, and most calls are judged by the note alone.
alter table project_tokens
  -- The tokens used and reserved when they were summed up last.
  add column known bigint,
  -- Upper bounds of the calls that were admitted since.
  add column admitted bigint not null default 0;

-- Every process reads every second which projects limit their month.
create index projects_limited on projects (id) where settings->>'monthly_token_limit' is not null;

-- Messages are removed by their age, and counted for their task.
drop index agent_messages_of_project;
create index agent_messages_of_project on agent_messages (project_id, created_at, id);
create index agent_messages_of_task on agent_messages (task_id) where kind = 'delegation';

-- The first task of a piece of work, for the log: null where a task is the first itself. A task below another has that
-- one's, and a task that a run made has that of the task which the run, or the run above it, is an attempt at.
alter table tasks add column root_task_id uuid;
create function muster.find_root_task() returns trigger language plpgsql as $$
begin
  if new.parent_task_id is not null then
    select coalesce(t.root_task_id, t.id) into new.root_task_id from tasks t where t.id = new.parent_task_id;
  else
    select coalesce(t.root_task_id, t.id) into new.root_task_id
    from agent_runs r join agent_runs top on top.id = coalesce(r.ancestors[1], r.id) join tasks t on t.id = top.task_id
    where r.id = new.run_id;
  end if;
  return new;
end $$;
create trigger tasks_root before insert on tasks for each row
  when (new.root_task_id is null and (new.parent_task_id is not null or new.run_id is not null))
  execute function muster.find_root_task();
