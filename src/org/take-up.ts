// Agents take up (start) their tasks. A due agent is checked once: its most urgent tasks become runs, at most
// task_batch_size at once. The project is locked meanwhile, so that two processes do not exceed its limits together.

import { TAKE_UP_LOCK } from '../agents/take-up-lock.ts'
import { anyOf, rowsOf } from '../db/lists.ts'
import type { Db, Pool, PreparedSql } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { cleanJson } from '../journal/clean-json.ts'
import type { MadeCall } from '../journal/finished-calls.ts'
import { insertRunsSql } from '../journal/insert-run.ts'
import type { Agent } from '../kernel/agent.ts'
import { taskScope } from '../kernel/call-key.ts'
import { newId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { aboutTask } from '../kernel/operation.ts'
import { settingsFrom } from '../kernel/project.ts'
import { makeDue } from '../tasks/task-queue.ts'
import { askBeforeAnew } from './begin-anew.ts'
import { logOnCommit } from './log-on-commit.ts'
import { type AttemptPlan, planAttempt } from './plan-attempt.ts'
import { changeStatuses } from './statuses.ts'
import { outcomesOf, subtasksOf, taskText } from './task-text.ts'
import { IS_AT_WORK, WORK_COLUMNS, type WorkTask } from './work-row.ts'

export interface TakenUp {
  /** The number of runs that were started or go on. */
  started: number
  /** The time until the project is to be checked again; null if an event must come first. */
  againInMs: number | null
}

/** A due agent with one of the tasks that it starts now; without a task if there is none. */
type DueRow = DueAgent & { [Column in keyof WorkTask]: WorkTask[Column] | null }

interface DueAgent {
  agent_id: string
  agent_status: string
  max_steps: number | null
  default_timeout: number | null
  flow_type: Agent['flow_type']
  tools: Agent['tools']
  steps: Agent['steps']
  /** The number of tasks that the agent may start. */
  free: number
  /** False for an agent that has to wait because max_concurrent_agents other agents are at work. */
  has_place: boolean
}

const MOST_AGENTS = 500
/** One transaction starts at most this many attempts. */
const MOST_ATTEMPTS = 500
const NOTHING: TakenUp = { started: 0, againInMs: null }
/** The wait after a needed row was locked by another transaction; such transactions are short. */
const BUSY_WAIT_MS = 30

/** Takes up the tasks of all due agents of the project, within its limits. */
export async function takeUpTasks(pool: Pool, log: Log, projectId: string): Promise<TakenUp> {
  return inTransaction(pool, async (tx) => {
    const project = await lockProject(tx, projectId)
    if (!project?.is_open) return NOTHING
    if (!project.is_locked) return { ...NOTHING, againInMs: BUSY_WAIT_MS }
    const busyInMs = project.is_passed_over ? BUSY_WAIT_MS : null
    if (project.due.length === 0) return { ...NOTHING, againInMs: busyInMs }
    const { task_batch_size: batchSize, max_concurrent_agents: mostAgents } = settingsFrom(project.settings)
    const { rows } = await tx.query<DueRow>(PICK, [projectId, batchSize, mostAgents, project.due])
    const looked = lookedAt(rows)
    const picked = rows.filter(isPicked)
    const { started, dueInMs } = await begin(tx, log, picked, looked)
    return { started, againInMs: earliest(busyInMs, dueInMs, isMore(rows, looked) ? 0 : null) }
  })
}

/** The checked agents, which become due again with the next event. */
interface LookedAt {
  ids: string[]
  /** Agents among them that could have started more tasks than they had. */
  hungry: string[]
}

function lookedAt(rows: readonly DueRow[]): LookedAt {
  const placed = rows.filter((row) => row.has_place)
  const agents = Map.groupBy(placed, (row) => row.agent_id)
  // The last agent may have more tasks than fitted.
  if (rows.length === MOST_ATTEMPTS) agents.delete(rows.at(-1)?.agent_id ?? '')
  const hungry = [...agents.values()].filter((own) => own.filter(isPicked).length < (own[0]?.free ?? 0))
  return { ids: [...agents.keys()], hungry: hungry.map((own) => own[0]?.agent_id ?? '') }
}

/** True if agents are left that may start at once. If no agent had a place, another check would find the same. */
function isMore(rows: readonly DueRow[], { ids }: LookedAt): boolean {
  const isProgress = ids.length > 0 || rows.some(isPicked)
  if (rows.length === MOST_ATTEMPTS) return isProgress
  const isPlaceLeft = ids.length > new Set(rows.filter(isPicked).map((row) => row.agent_id)).size
  return isPlaceLeft && rows.some((row) => !row.has_place)
}

function earliest(...times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.min(...known)
}

const isPicked = (row: DueRow): row is DueAgent & WorkTask => row.id !== null

interface LockedProject {
  settings: Record<string, unknown>
  /** False for a project that is halted or deleted, or whose tokens of the month are used up. */
  is_open: boolean
  /** False if another process is starting the project's tasks at this moment. */
  is_locked: boolean
  /** The due agents whose queues this transaction has locked. */
  due: string[]
  /** True if other agents are due whose queues another transaction has locked. */
  is_passed_over: boolean
}

/** The locks are taken by a separate statement, because the next one must see everything committed before the locks. */
const LOCK: PreparedSql = {
  name: 'take_up_lock',
  text: `
    with project as materialized (
      select settings, deleted_at is null and halted_at is null
        and not exists (select from agent_runs where project_id = $1::uuid and waits_for = 'month') as is_open,
        pg_try_advisory_xact_lock(${TAKE_UP_LOCK}) as is_locked
      from projects where id = $1::uuid
    ), wanted as materialized (
      select agent_id from task_queues where (select is_open and is_locked from project)
        and project_id = $1::uuid and due_at <= muster.now() order by due_at limit ${MOST_AGENTS}
    ), due as materialized (
      select agent_id from task_queues where agent_id in (select agent_id from wanted) for update skip locked
    )
    select *, array(select agent_id from due) as due,
      (select count(*) from due) < (select count(*) from wanted) as is_passed_over from project`,
}

async function lockProject(tx: Db, projectId: string): Promise<LockedProject | null> {
  const { rows } = await tx.query<LockedProject>(LOCK, [projectId])
  return rows[0] ?? null
}

/**
 * A working agent needs no further place, because a project's limit counts agents, not tasks. An agent whose task waits
 * for a provider takes up no other: that one would only wait, too.
 */
const PICK: PreparedSql = {
  name: 'take_up_pick',
  text: `
    with at_work as materialized (
      select agent_id, count(*)::int as count from agent_runs
      where project_id = $1 and ${IS_AT_WORK} group by agent_id
    ), due as (
      select q.agent_id, q.due_at, a.max_steps, a.default_timeout, a.flow_type, a.tools, a.steps, a.status as agent_status,
        a.enabled and a.deleted_at is null and a.status in ('active', 'bored')
          and not exists (select from agent_runs r where r.project_id = $1 and r.agent_id = a.id
            and r.waits_for = 'provider' and r.task_id is not null) as may_work
      from task_queues q join agents a on a.id = q.agent_id where q.agent_id = ${anyOf(4)}
    ), ranked as (
      select d.*, case when may_work then $2::int - coalesce(w.count, 0) else 0 end as free,
        w.count is not null as is_at_work,
        count(*) filter (where may_work and w.count is null) over (order by d.due_at, d.agent_id) as nth
      from due d left join at_work w using (agent_id)
    ), looked_at as (
      select *, free <= 0 or is_at_work or nth <= $3::int - (select count(*) from at_work) as has_place from ranked
    )
    select l.agent_id, l.agent_status, l.max_steps, l.default_timeout, l.flow_type, l.tools, l.steps, l.free, l.has_place, t.*
    from looked_at l left join lateral (
      select ${WORK_COLUMNS} from tasks
      where l.has_place and assigned_to = l.agent_id and status = 'pending' and kind = 'work' and waits_for is null
        and (retry_at is null or retry_at <= muster.now())
      order by muster.rank_of(priority) desc, created_at, id limit greatest(l.free, 0) for no key update skip locked
    ) t on true limit ${MOST_ATTEMPTS}`,
}

interface Attempt {
  task: DueAgent & WorkTask
  runId: string
  /** The input of a new run; null for a run that goes on. */
  input: string | null
}

/** Continues attempts, begins those that cannot be continued, and leaves out those that have to wait. */
async function begin(
  tx: Db,
  log: Log,
  picked: readonly (DueAgent & WorkTask)[],
  looked: LookedAt,
): Promise<{ started: number; dueInMs: number | null }> {
  const attempts: Attempt[] = []
  const passedBy: string[] = []
  for (const task of picked) {
    const attempt = await attemptOf(tx, log, task, await planAttempt(tx, task))
    if (attempt) attempts.push(attempt)
    else passedBy.push(task.agent_id)
  }
  const dueInMs = await write(tx, attempts, looked)
  // These agents may have other tasks to start.
  for (const agentId of passedBy) await makeDue(tx, picked[0]?.project_id ?? '', [agentId], { inMs: LOOK_AGAIN_MS })
  const bored = picked.filter((task) => task.agent_status === 'bored').map((task) => task.agent_id)
  if (bored.length > 0) await changeStatuses(tx, log, bored, { event: 'given', why: 'it has a task again.' })
  for (const { task, runId } of attempts) {
    logOnCommit(tx, log, 'task.taken_up', { ...aboutTask(task), run_id: runId }, { attempt: task.attempts + 1 })
  }
  return { started: attempts.length, dueInMs: earliest(dueInMs, passedBy.length > 0 ? LOOK_AGAIN_MS : null) }
}

const LOOK_AGAIN_MS = 200

/** Null if the task is not started now: its last run has not ended, or a person decides first. */
async function attemptOf(tx: Db, log: Log, task: DueAgent & WorkTask, plan: AttemptPlan): Promise<Attempt | null> {
  switch (plan.next) {
    case 'continue':
      return { task, runId: plan.runId, input: null }
    case 'begin':
      return { task, runId: newId(), input: cleanJson(await inputOf(tx, task, plan.calls)) }
    case 'ask':
      await askBeforeAnew(tx, log, task, plan)
      return null
    case 'wait':
      await tx.query(`update tasks set retry_at = muster.now() + $2 * interval '1 ms' where id = $1`, [
        task.id,
        plan.inMs,
      ])
      return null
  }
}

/** A flow gets the task as data: it reads the parts by its placeholders. */
async function inputOf(tx: Db, task: DueAgent & WorkTask, calls: readonly MadeCall[]): Promise<unknown> {
  const dependencies = await outcomesOf(tx, task.depends_on)
  if (task.flow_type === 'flow') {
    const { id, title, description, metadata } = task
    return { task: { id, title, description, metadata }, ...(dependencies.length > 0 ? { dependencies } : {}) }
  }
  const subtasks = task.is_decided ? ((await subtasksOf(tx, [task.id])).get(task.id) ?? []) : []
  return taskText(task, { dependencies, subtasks, calls })
}

/**
 * One statement starts all attempts. An agent whose tasks wait for another try is due again at the earliest retry; one
 * whose tasks another transaction had locked, in a moment; the others with the next event. Other transactions lock an
 * agent's tokens before its queue, which is locked here. So tokens that are locked are passed over: the agent's own work
 * is writing them, and notes the time as well.
 */
const WRITE: PreparedSql = {
  name: 'take_up_write',
  text: `
    with begun as (
      select * from ${rowsOf(['uuid', 'uuid', 'jsonb', 'int', 'int'])}
        as g (task_id, run_id, input, max_steps, timeout)
    ), started as (
      ${insertRunsSql(
        {
          id: 'b.run_id',
          project_id: 't.project_id',
          agent_id: 't.assigned_to',
          trigger: `jsonb_build_object('type', 'task', 'task_id', t.id)`,
          input: 'b.input',
          max_steps: 'b.max_steps',
          timeout: 'b.timeout',
          chain_depth: 't.chain_depth',
          task_id: 't.id',
          key_scope: `'${taskScope('')}' || t.id`,
          is_task_open: 'true',
        },
        'from begun b join tasks t on t.id = b.task_id where b.input is not null',
      )}
    ), taken as (
      update tasks t set status = 'in-progress', attempt_run_id = b.run_id, last_run_id = b.run_id, is_resumed = false, retry_at = null,
        progress_note = 'Attempt ' || t.attempts + 1 || ' is running.'
      from begun b where t.id = b.task_id returning t.assigned_to
    ), active as (
      update agent_tokens set last_active_at = muster.now() where agent_id in (
        select agent_id from agent_tokens where agent_id in (select assigned_to from taken) for update skip locked)
    ), first_active as (
      insert into agent_tokens (agent_id, last_active_at)
      select distinct assigned_to, muster.now() from taken
      where not exists (select from agent_tokens t where t.agent_id = assigned_to) order by assigned_to
      on conflict do nothing
    ), rescheduled as (
      update task_queues q set due_at = least((
        select min(t.retry_at) from tasks t where t.assigned_to = q.agent_id and t.status = 'pending' and t.kind = 'work'
          and t.waits_for is null and t.retry_at > muster.now()), (
        select muster.now() + ${BUSY_WAIT_MS} * interval '1 ms' from tasks t
        where q.agent_id = ${anyOf(7)} and t.assigned_to = q.agent_id and t.status = 'pending' and t.kind = 'work'
          and t.waits_for is null and (t.retry_at is null or t.retry_at <= muster.now())
          and not exists (select from begun b where b.task_id = t.id) limit 1))
      where q.agent_id = ${anyOf(6)} returning due_at
    )
    select (extract(epoch from min(due_at) - muster.now()) * 1000)::float8 as in_ms from rescheduled`,
}

async function write(tx: Db, attempts: readonly Attempt[], { ids, hungry }: LookedAt): Promise<number | null> {
  const { rows } = await tx.query<{ in_ms: number | null }>(WRITE, [
    attempts.map(({ task }) => task.id),
    attempts.map(({ runId }) => runId),
    attempts.map(({ input }) => input),
    attempts.map(({ task }) => task.max_steps),
    attempts.map(({ task }) => task.default_timeout),
    ids,
    hungry,
  ])
  return rows[0]?.in_ms ?? null
}

const FIND: PreparedSql = {
  name: 'projects_due',
  text: `
    with recursive found (id) as (
      (select project_id from task_queues where due_at is not null order by project_id limit 1)
      union all
      select (select q.project_id from task_queues q where q.due_at is not null and q.project_id > f.id
        order by q.project_id limit 1)
      from found f where f.id is not null
    )
    select f.id, (select (extract(epoch from q.due_at - muster.now()) * 1000)::float8 from task_queues q
      where q.project_id = f.id and q.due_at is not null order by q.due_at limit 1) as in_ms
    from found f cross join lateral (
      select from projects where id = f.id and halted_at is null and deleted_at is null limit 1) open`,
}

/** Projects with agents that are or will be due, each with the time until then. Halted projects are left out. */
export async function findDue(db: Db): Promise<{ id: string; inMs: number }[]> {
  const { rows } = await db.query<{ id: string; in_ms: number }>(FIND)
  return rows.map(({ id, in_ms: inMs }) => ({ id, inMs }))
}
