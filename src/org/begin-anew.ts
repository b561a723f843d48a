// A task whose work must begin anew after a call that must not be repeated unseen. A person sees each call made so far
// and decides: `again` lets the work begin anew, `stop` blocks the task.
import type { Db } from '../db/pool.ts'
import type { MadeCall } from '../journal/finished-calls.ts'
import type { Log } from '../kernel/log.ts'
import { aboutTask } from '../kernel/operation.ts'
import { anewDecision, askBeginAnew, beginAnewTaskId, isBeginAnewTask, STOPPED } from '../tasks/begin-anew-tasks.ts'
import { makeDue } from '../tasks/task-queue.ts'
import { logOnCommit } from './log-on-commit.ts'
import { lockTasks, newestRunOf, type WorkTask } from './work-row.ts'

export interface Anew {
  runId: string
  calls: readonly MadeCall[]
}

/** The task waits, and people are asked once per last run. */
export async function askBeforeAnew(tx: Db, log: Log, task: WorkTask, { runId, calls }: Anew): Promise<void> {
  await tx.query(
    `update tasks set waits_for = 'begin_anew', retry_at = null,
       progress_note = 'Waits for a person: may the work begin anew?' where id = $1`,
    [task.id],
  )
  const question = {
    projectId: task.project_id,
    agentId: task.assigned_to,
    workId: task.id,
    work: `the task "${task.title}"`,
    earlierRunId: runId,
    metadata: { task_id: task.id },
    calls,
  }
  await askBeginAnew(tx, question)
  const about = { project_id: task.project_id, agent_id: task.assigned_to, task_id: task.id }
  logOnCommit(tx, log, 'task.escalated', { ...about, correlation_id: task.root_task_id }, { to_agent_id: null })
}

/** Called in the transaction that resolved the question. */
export async function answerBeginAnew(tx: Db, log: Log, question: WorkTask): Promise<void> {
  const { task_id: taskId } = question.metadata
  if (typeof taskId !== 'string' || !isBeginAnewTask(question)) return
  const task = (await lockTasks(tx, [taskId])).get(taskId)
  const decision = anewDecision(question)
  if (task?.waits_for !== 'begin_anew' || decision === null) return
  if (decision === 'again') {
    await tx.query(
      `update tasks set waits_for = null, attempts = 0, cleared_run_id = coalesce(attempt_run_id, last_run_id), progress_note = null where id = $1`,
      [task.id],
    )
    await makeDue(tx, task.project_id, [task.assigned_to])
    return
  }
  await tx.query(
    `update tasks set waits_for = null, status = 'blocked', error_message = $2,
       progress_note = 'Blocked: a person decided that the work does not begin anew.' where id = $1`,
    [task.id, STOPPED],
  )
  logOnCommit(tx, log, 'task.blocked', aboutTask(task), { times_stuck: task.times_stuck })
}

/** The question is not open any more, because the task was changed or closed. */
export async function withdrawBeginAnew(tx: Db, tasks: readonly Asking[]): Promise<void> {
  const ids = tasks.flatMap((task) => {
    const runId = newestRunOf(task)
    return runId === null ? [] : [beginAnewTaskId(task.id, runId)]
  })
  if (ids.length === 0) return
  await tx.query(
    `update tasks set status = 'cancelled', completed_at = muster.now()
     where id = any($1) and status in ('pending', 'in-progress')`,
    [ids],
  )
}

type Asking = Pick<WorkTask, 'id' | 'attempt_run_id' | 'last_run_id'>
