-- Pieces of work with an assignee: an agent, or people where there is none.
create table tasks (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  kind text not null check (kind in ('work', 'suggestion', 'escalation')),
  title text not null,
  description text not null default '',
  priority text not null default 'medium' check (priority in ('low', 'medium', 'high', 'urgent')),
  status text not null default 'pending'
    check (status in ('pending', 'in-progress', 'completed', 'failed', 'blocked', 'rejected', 'cancelled')),
  assigned_to uuid,
  created_by jsonb not null,
  parent_task_id uuid references tasks on delete set null,
  result jsonb,
  error_message text,
  changes jsonb,
  reasoning text,
  run_id uuid,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default muster.now(),
  completed_at timestamptz
);
create index tasks_newest on tasks (project_id, created_at desc, id desc);
create index tasks_of_run on tasks (run_id) where run_id is not null;
