// A round runs at the shortest poll_interval of all projects: idle agents become bored, and overlooked tasks are
// started. Only agents whose check_at has passed are read, so an idle round is two statements.
import type { Db, Pool, PreparedSql } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Log } from '../kernel/log.ts'
import { defaultSettings, settingsFrom } from '../kernel/project.ts'
import { makeDue } from '../tasks/task-queue.ts'
import { becomeBored } from './boredom.ts'
import { IS_AT_WORK, TO_SETTLE } from './work-row.ts'

const MOST_AT_ONCE = 500
/** An agent with open tasks, or with a run that has not ended, is checked again after this time. */
const BUSY_MS = 60_000

const ROUND: PreparedSql = {
  name: 'org_round',
  text: `with round as (
      insert into org_rounds (at) values (muster.now()) on conflict (is_only) do update set at = excluded.at
    )
    select min((settings->>'poll_interval')::float8) as poll_interval from projects where settings ? 'poll_interval'
      and deleted_at is null`,
}

/** Returns the time until the next round is due. */
export async function sweepProjects(pool: Pool, log: Log): Promise<number> {
  const { rows } = await pool.query<{ poll_interval: number | null }>(ROUND)
  // The next batch waits until tasks that arrived meanwhile are started.
  if ((await checkIdle(pool, log)) === MOST_AT_ONCE) return 0
  return Math.min(defaultSettings.poll_interval, Math.max(SHORTEST_MS, rows[0]?.poll_interval ?? Number.MAX_VALUE))
}

const SHORTEST_MS = 100

interface CheckedAgent {
  id: string
  project_id: string
  settings: Record<string, unknown>
  /** The time at which the agent was to be checked. */
  check_at: string
  /** True for an agent without an open task that has a senior or was given a task before. */
  may_be_bored: boolean
  idle_ms: number
  has_open: boolean
  /** True for an agent without an open task whose run works or waits. */
  has_run: boolean
  /** True for a free agent that is not due although one of its tasks could start. */
  is_overlooked: boolean
}

const CHECK: PreparedSql = {
  name: 'agents_to_check',
  text: `with due as (
       select agent_id, due_at, check_at::text as check_at from task_queues where check_at <= muster.now() order by check_at limit ${MOST_AT_ONCE}
     )
     select a.id, a.project_id, p.settings, o.has_open, d.check_at,
       a.status = 'active' and a.enabled and a.deleted_at is null and not o.has_open
         and (a.senior_id is not null or exists (
           select from tasks t where t.project_id = a.project_id and t.assigned_to = a.id)) as may_be_bored,
       not o.has_open and exists (select from agent_runs r where r.project_id = a.project_id and r.agent_id = a.id
         and r.status in ('queued', 'running', 'paused') and r.completed_at is null) as has_run,
       (extract(epoch from muster.now() - coalesce(w.last_worked_at, a.created_at)) * 1000)::float8 as idle_ms,
       d.due_at is null and o.can_take and a.enabled and a.deleted_at is null and a.status in ('active', 'bored')
         and not exists (select from agent_runs where project_id = a.project_id and agent_id = a.id
           and ${IS_AT_WORK}) as is_overlooked
     from due d join agents a on a.id = d.agent_id join projects p on p.id = a.project_id
     left join agent_tokens w on w.agent_id = a.id
     cross join lateral (
       select exists (select from tasks t where t.assigned_to = a.id and t.status in ('in-progress', 'blocked'))
           or exists (select from tasks t where t.assigned_to = a.id and t.status = 'pending' and t.kind = 'work'
             and t.waits_for is null) as has_open,
         exists (select from tasks t where t.assigned_to = a.id and t.status = 'pending' and t.kind = 'work'
           and t.waits_for is null and t.created_at < muster.now() - interval '5 seconds') as can_take
     ) o`,
}

async function checkIdle(pool: Pool, log: Log): Promise<number> {
  const { rows } = await pool.query<CheckedAgent>(CHECK)
  const bored = new Map<number, Look[]>()
  const overlooked = new Map<string, string[]>()
  const again: Look[] = []
  for (const row of rows) {
    const { id, project_id: projectId, check_at: checkAt, may_be_bored, idle_ms, has_open, has_run } = row
    const { boredom_threshold: thresholdMs } = settingsFrom(row.settings)
    if (row.is_overlooked) overlooked.set(projectId, [...(overlooked.get(projectId) ?? []), id])
    if (may_be_bored && !has_run && idle_ms >= thresholdMs) {
      bored.set(thresholdMs, [...(bored.get(thresholdMs) ?? []), { id, checkAt, inMs: null }])
    } else {
      const idleInMs = has_run ? Math.min(BUSY_MS, thresholdMs) : thresholdMs - idle_ms
      again.push({ id, checkAt, inMs: has_open ? BUSY_MS : may_be_bored ? idleInMs : null })
    }
  }
  await checkAgain(pool, again)
  for (const [thresholdMs, looks] of bored) {
    await inTransaction(pool, async (tx) => {
      const idle = await stillIdle(tx, looks)
      const agentIds = idle.map((look) => look.id)
      await becomeBored(tx, log, agentIds, thresholdMs)
      await checkAgain(tx, idle)
    })
  }
  for (const [projectId, ids] of overlooked) {
    const agents = await countForgotten(pool, ids)
    if (agents > 0)
      log.warn({ project_id: projectId, agents }, 'agents had tasks to start but were not due; now they are')
    await makeDue(pool, projectId, ids)
  }
  return rows.length
}

/** An agent whose attempt has just ended is not forgotten: when the attempt is settled, the agent is due. */
async function countForgotten(pool: Pool, agentIds: readonly string[]): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(
    `select count(*)::integer as n from unnest($1::uuid[]) as g (id)
     where g.id not in (select agent_id from agent_runs where ${TO_SETTLE})`,
    [agentIds],
  )
  return rows[0]?.n ?? 0
}

interface Look {
  id: string
  checkAt: string
  /** The time until the next check; null if none is needed. */
  inMs: number | null
}

/** Keeps the agents that got no task since, and locks their queues: they get none until the transaction ends. */
async function stillIdle(tx: Db, looks: readonly Look[]): Promise<Look[]> {
  const { rows } = await tx.query<{ agent_id: string }>(
    `select q.agent_id from task_queues q join unnest($1::uuid[], $2::text[]) as g (id, check_at) on q.agent_id = g.id
     where q.check_at::text = g.check_at for update of q skip locked`,
    [looks.map((look) => look.id), looks.map((look) => look.checkAt)],
  )
  const idle = new Set(rows.map((row) => row.agent_id))
  return looks.filter((look) => idle.has(look.id))
}

/** Sets the time of the next check. An agent whose check_at was changed since keeps the changed time. */
async function checkAgain(db: Db, looks: readonly Look[]): Promise<void> {
  if (looks.length === 0) return
  await db.query(
    `update task_queues q set check_at = muster.now() + g.in_ms * interval '1 ms'
     from unnest($1::uuid[], $2::text[], $3::float8[]) as g (id, check_at, in_ms)
     where q.agent_id = g.id and q.check_at::text = g.check_at`,
    [looks.map((look) => look.id), looks.map((look) => look.checkAt), looks.map((look) => look.inMs)],
  )
}

/** Checks all agents of the project again, because its threshold was changed. */
export async function checkAll(db: Db, projectId: string): Promise<void> {
  await db.query('update task_queues set check_at = muster.now() where project_id = $1 and check_at is not null', [
    projectId,
  ])
}
