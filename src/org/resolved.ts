// When a task is completed, is cancelled or fails, the tasks that wait for it go on in the same transaction.
import { anyOf, listAt, rowsOf } from '../db/lists.ts'
import type { Db, PreparedSql } from '../db/pool.ts'
import { cleanJson, cleanText } from '../journal/clean-json.ts'
import type { Log } from '../kernel/log.ts'
import { aboutTask } from '../kernel/operation.ts'
import { isResolved, type TaskStatus } from '../kernel/task.ts'
import { makeDue } from '../tasks/task-queue.ts'
import { answerBeginAnew } from './begin-anew.ts'
import { requestResolved } from './budget.ts'
import { free } from './escalate.ts'
import { logOnCommit } from './log-on-commit.ts'
import { messageId, noteSent, SENT, type SentMessage, sendMessages } from './messages.ts'
import { resultText, subtasksOf, type TaskOutcome, withOpenParts } from './task-text.ts'
import { lockTasks, WORK_COLUMNS, type WorkTask } from './work-row.ts'

/** The caller has locked the tasks and written their final status. */
export async function tasksResolved(tx: Db, log: Log, tasks: readonly WorkTask[]): Promise<void> {
  for (const task of tasks) {
    await answerEscalation(tx, log, task)
    await answerBeginAnew(tx, log, task)
    await requestResolved(tx, log, task)
  }
  await report(tx, log, tasks)
  const parts = tasks.filter((task) => task.parent_task_id !== null)
  if (parts.length === 0) return
  await wakeDependents(tx, log, parts)
  await rollUp(tx, log, [...new Set(parts.map((task) => task.parent_task_id ?? ''))])
}

export const taskResolved = (tx: Db, log: Log, task: WorkTask): Promise<void> => tasksResolved(tx, log, [task])

/**
 * A resolved escalation frees the stuck agent, and the blocked task is tried once more with the answer. Columns decide
 * this: people may write metadata.
 */
async function answerEscalation(tx: Db, log: Log, task: WorkTask): Promise<void> {
  if (task.helps_task_id === null) return
  const blocked = (await lockTasks(tx, [task.helps_task_id])).get(task.helps_task_id)
  if (blocked?.status !== 'blocked' || blocked.assigned_to === null) return
  if (task.status === 'completed') {
    const from = task.assigned_to === null ? 'The people in charge' : await nameOf(tx, task.assigned_to)
    const text = resultText(task.result)
    const advice = [...blocked.advice, { from, text }]
    if (task.assigned_to !== null) {
      const about = { projectId: task.project_id, from: task.assigned_to, to: blocked.assigned_to, taskId: blocked.id }
      const body = cleanText(`${from} on "${blocked.title}": ${text}`)
      await sendMessages(tx, [{ ...about, kind: 'escalation', body, key: `advice ${task.id}` }], log)
    }
    await tx.query('update tasks set advice = $2 where id = $1', [blocked.id, cleanJson(advice)])
  }
  await tx.query(
    `update tasks set status = 'pending', attempts = 0, retry_at = null, progress_note = 'Help has come: it is tried again.'
     where id = $1`,
    [blocked.id],
  )
  logOnCommit(tx, log, 'task.freed', aboutTask(blocked))
  await free(tx, log, blocked.assigned_to, `its escalation was ${task.status}.`, blocked)
}

async function nameOf(tx: Db, agentId: string): Promise<string> {
  const { rows } = await tx.query<{ name: string }>('select name from agents where id = $1', [agentId])
  return rows[0]?.name ?? 'An agent that was deleted'
}

/** A parent's own message lists the status of its subtasks only: their results were reported by their agents. */
function inShort(result: unknown): string {
  if (!Array.isArray(result)) return resultText(result)
  return result.map(({ title, status }: TaskOutcome) => `"${title}" is ${status}.`).join(' ')
}

const REPORT: PreparedSql = {
  name: 'completions_told',
  text: `insert into agent_messages (id, project_id, from_agent, to_agent, kind, body, task_id)
    select g.id, a.project_id, a.id, s.id, 'completion', a.name || ': ' || g.text, g.task_id
    from ${rowsOf(['uuid', 'uuid', 'uuid', 'text'])} as g (id, agent_id, task_id, text)
    join agents a on a.id = g.agent_id join agents s on s.id = a.senior_id and s.deleted_at is null
    on conflict (id) do nothing returning ${SENT}`,
}

/** Seniors get a message when a task ends; no model is called for it. */
async function report(tx: Db, log: Log, tasks: readonly WorkTask[]): Promise<void> {
  const reported = tasks.filter((task) => task.assigned_to !== null && task.kind === 'work')
  if (reported.length === 0) return
  const { rows } = await tx.query<SentMessage>(REPORT, [
    reported.map(({ id, attempt_run_id: attempt, status }) => messageId(`completion ${id} ${attempt} ${status}`)),
    reported.map((task) => task.assigned_to),
    reported.map((task) => task.id),
    reported.map(({ title, status, result, error_message: error }) =>
      cleanText(`"${title}" is ${status}. ${inShort(result ?? error)}`),
    ),
  ])
  noteSent(tx, log, rows)
}

/** A subtask starts when all tasks it depends on are completed; it fails if one of them was not completed. */
async function wakeDependents(tx: Db, log: Log, tasks: readonly WorkTask[]): Promise<void> {
  const { rows: waiting } = await tx.query<WorkTask>(DEPENDENTS, [
    tasks.map((task) => task.parent_task_id),
    tasks.map((task) => task.id),
  ])
  for (const dependent of waiting) {
    const { rows } = await tx.query<{ status: TaskStatus }>('select status from tasks where id = any($1)', [
      dependent.depends_on,
    ])
    if (rows.some(({ status }) => isResolved(status) && status !== 'completed')) {
      await cancelDependent(tx, log, dependent)
    } else if (rows.every(({ status }) => status === 'completed')) {
      await tx.query('update tasks set waits_for = null where id = $1', [dependent.id])
      await makeDue(tx, dependent.project_id, [dependent.assigned_to])
    }
  }
}

const DEPENDENTS: PreparedSql = {
  name: 'dependent_tasks',
  text: `select ${WORK_COLUMNS} from tasks
    where parent_task_id = ${anyOf(1)} and status = 'pending' and waits_for = 'dependencies' and depends_on && ${listAt(2)}
    order by id for update`,
}

async function cancelDependent(tx: Db, log: Log, dependent: WorkTask): Promise<void> {
  const error = 'A task that it depends on was not completed.'
  await tx.query(
    `update tasks set status = 'cancelled', waits_for = null, error_message = $2, completed_at = muster.now() where id = $1`,
    [dependent.id, error],
  )
  logOnCommit(tx, log, 'task.cancelled', aboutTask(dependent))
  await taskResolved(tx, log, { ...dependent, status: 'cancelled', error_message: error })
}

/** Parents complete with the results of their subtasks. If one was not completed, the parent's agent gets one try. */
async function rollUp(tx: Db, log: Log, parentIds: readonly string[]): Promise<void> {
  const locked = await lockTasks(tx, parentIds)
  const waiting = [...locked.values()].filter((task) => task.status === 'in-progress' && task.waits_for === 'subtasks')
  const ids = waiting.map((task) => task.id)
  const open = await withOpenParts(tx, ids)
  const whole = ids.filter((id) => !open.has(id))
  // Results grow with every level of subtasks: if they are too long for one task, each result is shortened.
  const partsOf = await subtasksOf(tx, whole, { ofAll: MOST_CHARACTERS, ofOne: MOST_CHARACTERS })
  const completed: (WorkTask & { result: TaskOutcome[] })[] = []
  for (const parent of waiting) {
    if (open.has(parent.id)) continue
    const parts = partsOf.get(parent.id) ?? []
    if (parts.every(({ status }) => status === 'completed')) {
      completed.push({ ...parent, status: 'completed', waits_for: null, result: parts })
    } else {
      await tryWithoutParts(tx, parent)
    }
  }
  if (completed.length === 0) return
  await tx.query(COMPLETE, [completed.map((task) => task.id), completed.map((task) => cleanJson(task.result))])
  for (const task of completed) logOnCommit(tx, log, 'task.completed', aboutTask(task))
  await tasksResolved(tx, log, completed)
}

const COMPLETE: PreparedSql = {
  name: 'parents_complete',
  text: `update tasks t set status = 'completed', waits_for = null, result = g.result, completed_at = muster.now(),
      progress_note = null
    from ${rowsOf(['uuid', 'jsonb'])} as g (id, result) where t.id = g.id`,
}

const MOST_CHARACTERS = 1_000_000

async function tryWithoutParts(tx: Db, parent: WorkTask): Promise<void> {
  await tx.query(
    `update tasks set status = 'pending', waits_for = null, is_decided = true,
       progress_note = 'Not every subtask was completed.' where id = $1`,
    [parent.id],
  )
  await makeDue(tx, parent.project_id, [parent.assigned_to])
}
