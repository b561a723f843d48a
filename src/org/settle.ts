// Carries the outcome of an attempt (a run) over to its task, which is completed, retried, blocked or handed back.
import { isUnavailable } from '../db/failures.ts'
import { anyOf, listAt, rowsOf } from '../db/lists.ts'
import type { Db, Pool, PreparedSql } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { getSettings } from '../identity/settings.ts'
import type { Log } from '../kernel/log.ts'
import { aboutTask } from '../kernel/operation.ts'
import { noteFreed } from '../tasks/task-queue.ts'
import { noteExhausted } from './budget.ts'
import { getStuck } from './escalate.ts'
import { logOnCommit } from './log-on-commit.ts'
import { taskResolved, tasksResolved } from './resolved.ts'
import { lockTasks, TO_SETTLE, type WorkTask } from './work-row.ts'

interface EndedAttempt {
  id: string
  project_id: string
  agent_id: string
  task_id: string
  status: 'completed' | 'failed' | 'cancelled' | 'paused'
  pause_reason: string | null
  summary: string | null
  error_code: string | null
  error_message: string | null
  timeout: number | null
  max_steps: number | null
  /** True if the attempt ended while it waited for tokens, because its flow run had ended. */
  has_waited: boolean
}

type Unfinished = EndedAttempt & { status: Exclude<EndedAttempt['status'], 'completed'> }

const isUnfinished = (run: EndedAttempt): run is Unfinished => run.status !== 'completed'

const MOST_AT_ONCE = 200
const FIRST_RETRY_MS = 200
const LONGEST_RETRY_MS = 60_000

const FIND: PreparedSql = {
  name: 'attempts_find',
  text: `select id, task_id from agent_runs where ${TO_SETTLE} and id <> all (${listAt(1)}::uuid[])
    order by id limit ${MOST_AT_ONCE}`,
}
const LOCK: PreparedSql = {
  name: 'attempts_lock',
  text: `select id, project_id, agent_id, task_id, status, pause_reason, summary, error_code, error_message, timeout,
      max_steps, tokens_wait_since is not null as has_waited
    from agent_runs where id = ${anyOf(1)} and ${TO_SETTLE} order by id for update skip locked`,
}
const SETTLED: PreparedSql = {
  name: 'attempts_settled',
  text: `
    with settled as (update agent_runs set is_task_open = false where id = ${anyOf(1)} returning agent_id)
    insert into agent_tokens (agent_id, last_active_at)
    select distinct agent_id, muster.now() from settled order by agent_id
    on conflict (agent_id) do update set last_active_at = excluded.last_active_at`,
}
const THERE: PreparedSql = { name: 'tasks_there', text: `select id from tasks where id = ${anyOf(1)}` }
const COMPLETE: PreparedSql = {
  name: 'tasks_complete',
  text: `update tasks t set status = 'completed', result = g.result, error_message = null, completed_at = muster.now(),
      progress_note = null
    from ${rowsOf(['uuid', 'jsonb'])} as g (id, result) where t.id = g.id`,
}

const SET_ASIDE_MS = 60_000

export interface SettledAttempts {
  /** The settled attempts, whose agents may be due. */
  settled: readonly EndedAttempt[]
  /** True if attempts were passed over because another transaction has locked them or their tasks. */
  isBusy: boolean
}

/** Returns the function that settles one batch. An attempt that fails is set aside for a minute, to stop no other. */
export function createSettling(pool: Pool, log: Log): () => Promise<SettledAttempts> {
  const asideUntil = new Map<string, number>()

  return async () => {
    for (const [id, until] of asideUntil) if (until <= performance.now()) asideUntil.delete(id)
    const { rows: found } = await pool.query<Found>(FIND, [[...asideUntil.keys()]])
    if (found.length === 0) return { settled: [], isBusy: false }
    try {
      const settled = await settleTogether(pool, log, found)
      return { settled, isBusy: settled.length < found.length }
    } catch (error) {
      if (isUnavailable(error)) throw error
      const settled: EndedAttempt[] = []
      for (const one of found) settled.push(...(await settleTogether(pool, log, [one]).catch(setAside(one))))
      return { settled, isBusy: false }
    }
  }

  function setAside({ id, task_id: taskId }: Found): (error: unknown) => EndedAttempt[] {
    return (error) => {
      if (isUnavailable(error)) throw error
      log.error({ err: error, run_id: id, task_id: taskId }, 'the outcome of an attempt cannot be carried over yet')
      asideUntil.set(id, performance.now() + SET_ASIDE_MS)
      return []
    }
  }
}

interface Found {
  id: string
  task_id: string
}

async function settleTogether(pool: Pool, log: Log, found: readonly Found[]): Promise<EndedAttempt[]> {
  return inTransaction(pool, async (tx) => {
    const taskIds = found.map((run) => run.task_id)
    const tasks = await lockTasks(tx, taskIds, { passOver: true })
    // A deleted task has no row; its attempt is settled all the same.
    const gone = await missingOf(tx, taskIds, tasks)
    const free = found.filter(({ task_id: taskId }) => tasks.has(taskId) || gone.has(taskId))
    const { rows: runs } = await tx.query<EndedAttempt>(LOCK, [free.map((run) => run.id)])
    const completed: { task: WorkTask; run: EndedAttempt }[] = []
    for (const run of runs) {
      const task = tasks.get(run.task_id)
      if (task?.attempt_run_id !== run.id || !isOpen(task, run)) continue
      logOnCommit(tx, log, 'attempt.ended', aboutTask(task), { status: run.status, pause_reason: run.pause_reason })
      if (isUnfinished(run)) await settle(tx, log, task, run)
      else completed.push({ task, run })
    }
    await complete(tx, log, completed)
    await tx.query(SETTLED, [runs.map((run) => run.id)])
    const agentIds = runs.map((run) => run.agent_id)
    await noteFreed(tx, agentIds)
    return runs
  })
}

/** A task that waits for tokens is pending. Its attempt may end all the same. */
const isOpen = ({ status }: WorkTask, run: EndedAttempt): boolean =>
  status === 'in-progress' || (status === 'pending' && run.status !== 'paused' && run.has_waited)

async function missingOf(tx: Db, ids: readonly string[], known: ReadonlyMap<string, unknown>): Promise<Set<string>> {
  const unknown = ids.filter((id) => !known.has(id))
  if (unknown.length === 0) return new Set()
  const { rows } = await tx.query<{ id: string }>(THERE, [unknown])
  const there = new Set(rows.map((row) => row.id))
  return new Set(unknown.filter((id) => !there.has(id)))
}

/** One statement settles all ended attempts. Tasks that were delegated or split wait for their subtasks. */
async function complete(tx: Db, log: Log, completed: readonly { task: WorkTask; run: EndedAttempt }[]): Promise<void> {
  const done = completed.filter(({ task }) => task.waits_for !== 'subtasks')
  if (done.length === 0) return
  await tx.query(COMPLETE, [done.map(({ task }) => task.id), done.map(({ run }) => JSON.stringify(run.summary))])
  for (const { task } of done) logOnCommit(tx, log, 'task.completed', aboutTask(task))
  await tasksResolved(
    tx,
    log,
    done.map(({ task, run }) => ({ ...task, status: 'completed', result: run.summary, error_message: null })),
  )
}

async function settle(tx: Db, log: Log, task: WorkTask, run: Unfinished): Promise<void> {
  switch (run.status) {
    case 'cancelled':
      await cancel(tx, log, task)
      logOnCommit(tx, log, 'task.cancelled', aboutTask(task))
      return
    case 'paused':
      if (run.pause_reason === 'stopped') return handBack(tx, log, task, 'Its agent was stopped.')
      if (run.pause_reason === 'budget') {
        await noteExhausted(tx, log, run.agent_id)
        return handBack(tx, log, task, 'Waits for tokens.')
      }
      return failAttempt(tx, log, task, limitSentence(run))
    case 'failed':
      logOnCommit(tx, log, 'attempt.failed', aboutTask(task), { error_code: run.error_code })
      return failAttempt(tx, log, task, run.error_message ?? run.error_code ?? 'The attempt failed.')
  }
}

function limitSentence({ pause_reason: reason, timeout, max_steps: steps }: EndedAttempt): string {
  if (reason === 'timeout') return `The attempt reached its time limit of ${timeout} ms (timeout).`
  if (reason === 'step_limit') return `The attempt reached its limit of ${steps} steps (step_limit).`
  return `The attempt paused: ${reason}.`
}

async function cancel(tx: Db, log: Log, task: WorkTask): Promise<void> {
  await tx.query(
    `update tasks set status = 'cancelled', completed_at = muster.now(), progress_note = null where id = $1`,
    [task.id],
  )
  await taskResolved(tx, log, { ...task, status: 'cancelled' })
}

/** The attempt does not count: the work goes on from the same point with tokens, or when the agent is started again. */
async function handBack(tx: Db, log: Log, task: WorkTask, note: string): Promise<void> {
  logOnCommit(tx, log, 'task.handed_back', aboutTask(task))
  await tx.query(`update tasks set status = 'pending', progress_note = $2 where id = $1`, [task.id, note])
}

async function failAttempt(tx: Db, log: Log, task: WorkTask, error: string): Promise<void> {
  const attempts = task.attempts + 1
  if (task.assigned_to === null) return fail(tx, log, task, error)
  const { stuck_retry_limit: retries } = await getSettings(tx, task.project_id)
  if (attempts > retries) {
    await tx.query('update tasks set attempts = $2 where id = $1', [task.id, attempts])
    return getStuck(tx, log, task, error)
  }
  const waitMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (attempts - 1))
  await tx.query(
    `update tasks set status = 'pending', attempts = $2, error_message = $3, progress_note = $4,
       retry_at = muster.now() + $5 * interval '1 ms' where id = $1`,
    [task.id, attempts, error, `Attempt ${attempts} failed; it is tried again.`, waitMs],
  )
  logOnCommit(tx, log, 'task.retried', aboutTask(task), { attempts, in_ms: waitMs })
}

/** The task has no agent that could try again. */
async function fail(tx: Db, log: Log, task: WorkTask, error: string): Promise<void> {
  await tx.query(
    `update tasks set status = 'failed', error_message = $2, completed_at = muster.now(), progress_note = null where id = $1`,
    [task.id, error],
  )
  await taskResolved(tx, log, { ...task, status: 'failed', error_message: error })
}
