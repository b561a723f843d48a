// The figures of the organisation, over all projects and processes, for the metrics. Each is read by an index of open
// rows, and counted up to a bound. With 1,000 projects, 10,000 agents, 10,000 open tasks and 1,000,000 ended tasks they
// touch 71 (the oldest task), 29 (tasks), 15 (agents), 624 (1,450 agents with a mark) and 1,282 buffers (the months of
// 500 projects).
import type { Db } from '../db/pool.ts'
import { THIS_MONTH } from '../journal/month.ts'
import { type AgentStatus, agentStatuses } from '../kernel/agent-status.ts'
import { isResolved, type Task, type TaskStatus, taskKinds, taskStatuses } from '../kernel/task.ts'

const OPEN = taskStatuses.filter((status) => !isResolved(status))
export const MOST_TASKS = 10_000
export const MOST_AGENTS = 100_000

/** The condition of the index tasks_to_take. */
const TO_TAKE = `t.status = 'pending' and t.kind = 'work' and t.assigned_to is not null and t.waits_for is null`
const IS_TIME = '(t.retry_at is null or t.retry_at <= muster.now())'
const mayWork = (agentId: string): string => `exists (select from agents a join projects p on p.id = a.project_id
  where a.id = ${agentId} and a.enabled and a.deleted_at is null and a.status in ('active', 'bored')
    and p.halted_at is null and p.deleted_at is null)`

/** Pending tasks, oldest first; some may have to be passed over to find one that can be started. */
const PENDING = `tasks t where t.completed_at is null and t.kind = 'work' and t.status = 'pending' order by t.created_at`

/**
 * The age of the oldest task that an agent could start, in seconds. Mostly one of the first can be started. If the
 * oldest MOST_TASKS all belong to agents that may not work, the oldest task of each agent is read instead, which takes
 * some hundred milliseconds for 10,000 agents.
 */
export async function oldestTaskSeconds(db: Db): Promise<number> {
  const { rows } = await db.query<{ seconds: number }>(
    `with recursive agents_with_tasks (id) as (
       select (select t.assigned_to from tasks t where ${TO_TAKE} order by t.assigned_to limit 1)
       union all
       select (select t.assigned_to from tasks t where ${TO_TAKE} and t.assigned_to > w.id order by t.assigned_to limit 1)
       from agents_with_tasks w where w.id is not null
     ), ready as (
       select w.id from agents_with_tasks w where w.id is not null and ${mayWork('w.id')}
     )
     select coalesce(extract(epoch from muster.now() - coalesce(
       (select t.created_at from (select * from ${PENDING} limit ${MOST_TASKS}) t
        where ${TO_TAKE} and ${IS_TIME} and ${mayWork('t.assigned_to')} order by t.created_at limit 1),
       case when exists (select from ${PENDING} offset ${MOST_TASKS} limit 1) then
         (select min(o.created_at) from ready r cross join generate_series(0, 3) rank cross join lateral (
            select t.created_at from tasks t where t.assigned_to = r.id and muster.rank_of(t.priority) = rank
              and ${TO_TAKE} and ${IS_TIME} order by t.created_at limit 1) o) end
     )), 0)::float8 as seconds`,
  )
  return Math.max(0, rows[0]?.seconds ?? 0)
}

export interface TaskCount {
  kind: Task['kind']
  status: TaskStatus
  count: number
}

export async function countOpenTasks(db: Db): Promise<TaskCount[]> {
  const { rows } = await db.query<TaskCount>(
    `select g.kind, g.status, (select count(*)::int from (
       select from tasks t where t.completed_at is null and t.kind = g.kind and t.status = g.status limit ${MOST_TASKS}) c) as count
     from unnest($1::text[]) as k (kind) cross join unnest($2::text[]) as s (status)
     cross join lateral (select k.kind, s.status) g`,
    [taskKinds, OPEN],
  )
  return rows
}

export async function countAgents(db: Db): Promise<{ status: AgentStatus; count: number }[]> {
  const { rows } = await db.query<{ status: AgentStatus; count: number }>(
    `select s.status, (select count(*)::int from (
       select from agents a where a.deleted_at is null and a.status = s.status limit ${MOST_AGENTS}) c) as count
     from unnest($1::text[]) as s (status)`,
    [agentStatuses],
  )
  return rows
}

export async function countMarked(db: Db): Promise<{ mark: number; count: number }[]> {
  const { rows } = await db.query<{ mark: number; count: number }>(
    `select m.mark, (select count(*)::int from (
       select from agent_tokens t where t.mark = m.mark and t.mark > 0
         and exists (select from agents a where a.id = t.agent_id and a.deleted_at is null)
       limit ${MOST_TASKS}) c) as count
     from unnest('{90,95,100}'::smallint[]) as m (mark)`,
  )
  return rows
}

/**
 * The tokens that projects with a limit have used this month, their limits, and the number of projects without tokens.
 * The projects are found first: knowing their number, PostgreSQL reads the agents by index or all at once.
 */
export async function sumLimitedMonths(db: Db): Promise<{ used: number; limit: number; spent: number }> {
  const { rows: limited } = await db.query<{ id: string; most: number }>(
    `select p.id, (p.settings->>'monthly_token_limit')::float8 as most from projects p
     where p.settings->>'monthly_token_limit' is not null and p.deleted_at is null`,
  )
  if (limited.length === 0) return { used: 0, limit: 0, spent: 0 }
  const { rows } = await db.query<{ id: string; used: number }>(
    `select id, sum(used)::float8 as used from (
       select a.project_id as id, t.month_used as used from agents a join agent_tokens t on t.agent_id = a.id
       where a.project_id = any($1::uuid[]) and t.month = (select ${THIS_MONTH})
       union all
       select project_id, used from project_tokens where project_id = any($1::uuid[]) and month = (select ${THIS_MONTH})
     ) m group by id`,
    [limited.map((project) => project.id)],
  )
  const usedBy = new Map(rows.map((row) => [row.id, row.used]))
  return {
    used: rows.reduce((sum, row) => sum + row.used, 0),
    limit: limited.reduce((sum, project) => sum + project.most, 0),
    spent: limited.filter(({ id, most }) => (usedBy.get(id) ?? 0) >= most).length,
  }
}
