-- The organisation: agents take up their tasks by themselves, delegate, report and escalate.

alter table agents
  -- Why an agent is paused: somebody stopped it, or its tokens are used up.
  add column paused_for text check (paused_for in ('stopped', 'budget'));
alter table agent_tokens
  add column last_worked_at timestamptz,
  -- The tokens of one UTC month.
  add column month date,
  add column month_used bigint not null default 0,
  -- The number of times the allocation was used up: each makes a task of its own.
  add column exhaustions integer not null default 0;

-- The last round of the organisation, which serves all projects: idle agents are not written to.
create table org_rounds (
  is_only boolean primary key default true check (is_only),
  at timestamptz not null
);

-- Agents that may have a task to take up. A row without due_at costs nothing: it is due again when a task arrives, when
-- an attempt ends, and when the agent may work again.
create table task_queues (
  agent_id uuid primary key references agents on delete cascade,
  project_id uuid not null references projects on delete cascade,
  due_at timestamptz,
  -- The time at which to look whether the agent is idle; null once it is bored.
  check_at timestamptz default muster.now()
) with (fillfactor = 50);
create index task_queues_due on task_queues (project_id, due_at) where due_at is not null;
create index task_queues_to_check on task_queues (check_at) where check_at is not null;
create index task_queues_of_project on task_queues (project_id);
create index projects_polled on projects (id) where settings ? 'poll_interval';

create function muster.rank_of(priority text) returns int language sql immutable parallel safe
  return case priority when 'urgent' then 3 when 'high' then 2 when 'medium' then 1 else 0 end;

alter table tasks
  -- The run of the attempt under way, or of the last one.
  add column attempt_run_id uuid,
  -- Failed attempts since the task was given to its agent or freed.
  add column attempts integer not null default 0,
  add column retry_at timestamptz,
  -- The number of times the task got stuck: each time the escalation goes one senior higher.
  add column times_stuck integer not null default 0,
  -- A task waits for its subtasks, a subtask for those it depends on.
  add column waits_for text check (waits_for in ('subtasks', 'dependencies')),
  add column depends_on uuid[] not null default '{}',
  -- How many plans lie above this task.
  add column plan_depth smallint not null default 0,
  -- The next attempt works on the task itself, without a decision.
  add column is_decided boolean not null default false,
  -- What was answered to the escalations of this task; shown at its next attempt.
  add column advice jsonb not null default '[]',
  add column progress_note text,
  -- The blocked task that this one asks for help with.
  add column helps_task_id uuid,
  -- The agent that this task asks for tokens for.
  add column helps_agent_id uuid;

alter table agent_runs
  add column task_id uuid,
  -- The outcome of this attempt was not yet carried over to its task.
  add column is_task_open boolean not null default false,
  add column stop_requested_at timestamptz;

-- Messages between agents. They are delivered without a model call.
create table agent_messages (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  from_agent uuid not null,
  to_agent uuid not null,
  kind text not null check (kind in ('completion', 'budget', 'escalation', 'delegation', 'status')),
  body text not null,
  task_id uuid,
  created_at timestamptz not null default muster.now()
);
create index agent_messages_sent on agent_messages (from_agent, created_at desc, id desc);
create index agent_messages_received on agent_messages (to_agent, created_at desc, id desc);
create index agent_messages_of_project on agent_messages (project_id);

-- The tokens of model calls that no agent makes (functions of flows, recommendations), by UTC month.
create table project_tokens (
  project_id uuid not null references projects on delete cascade,
  month date not null,
  used bigint not null default 0,
  primary key (project_id, month)
) with (fillfactor = 50);
