// The next attempt at a task. It continues the run of the last attempt, so that finished calls are not made again. If
// the history cannot be continued, or the work passed to another agent, it begins anew, and after a call that must not
// be repeated unseen a person decides first.
import type { Db } from '../db/pool.ts'
import { hasUnsafe, type MadeCall } from '../journal/finished-calls.ts'
import type { Agent } from '../kernel/agent.ts'
import {
  canContinue,
  type EarlierRun,
  hasStartedFlow,
  insertContinuation,
  lockEarlier,
  lostTools,
} from '../runs/continue-run.ts'
import { callsOfUnfinished, callsOfWork } from './made-calls.ts'
import { continuationText } from './task-text.ts'
import { newestRunOf, type WorkTask } from './work-row.ts'

export type AttemptPlan =
  /** This run works on the task from now on. */
  | { next: 'continue'; runId: string }
  /** A new run begins, and is told these calls. */
  | { next: 'begin'; calls: MadeCall[] }
  /** A person decides whether the work may begin anew. */
  | { next: 'ask'; runId: string; calls: MadeCall[] }
  /** The run of the last attempt, or a sub-run of it, has not ended yet. */
  | { next: 'wait'; inMs: number }

const RUN_ENDS_IN_MS = 200
/** A sub-run may wait for a person. */
const SUB_RUN_ENDS_IN_MS = 5_000

export type AttemptedTask = WorkTask & Pick<Agent, 'max_steps' | 'default_timeout' | 'flow_type' | 'tools' | 'steps'>

export async function planAttempt(tx: Db, task: AttemptedTask): Promise<AttemptPlan> {
  const lastRunId = newestRunOf(task)
  const earlier = lastRunId === null ? null : await lockEarlier(tx, task.project_id, lastRunId)
  if (!earlier) return { next: 'begin', calls: [] }
  if (earlier.id === task.attempt_run_id && (await wakeForTokens(tx, task, earlier))) {
    return { next: 'continue', runId: earlier.id }
  }
  if (earlier.completed_at === null) return { next: 'wait', inMs: RUN_ENDS_IN_MS }
  if (earlier.has_open_children) return { next: 'wait', inMs: SUB_RUN_ENDS_IN_MS }
  if (await mayContinue(tx, task, earlier)) return { next: 'continue', runId: await continueAttempt(tx, task, earlier) }
  const calls = await callsOfWork(tx, task.id)
  if (task.cleared_run_id === earlier.id) return { next: 'begin', calls }
  // The work of a completed subtask is not done again; an unfinished one may have had an effect.
  const repeatable = isAfterSubtasks(task, earlier) ? await callsOfUnfinished(tx, task.id) : calls
  return hasUnsafe(repeatable) ? { next: 'ask', runId: earlier.id, calls } : { next: 'begin', calls }
}

/** The attempt that sees the outcomes of subtasks. The run before it only split the task. */
const isAfterSubtasks = (task: AttemptedTask, earlier: EarlierRun): boolean =>
  task.is_decided && earlier.status === 'completed' && earlier.agent_id === task.assigned_to

/** The attempt waited for tokens, and its own run continues. */
async function wakeForTokens(tx: Db, task: WorkTask, earlier: EarlierRun): Promise<boolean> {
  const { rows } = await tx.query<{ waits: boolean; has_flow_ended: boolean }>(
    `select status = 'paused' and completed_at is null and pause_reason = 'budget' as waits,
       status <> 'paused' and is_task_open and tokens_wait_since is not null as has_flow_ended
     from agent_runs where id = $1 and agent_id = $2`,
    [earlier.id, task.assigned_to],
  )
  const [facts] = rows
  // The flow run of the attempt ended while both waited for tokens, and the attempt ends now, or has ended.
  if (facts?.has_flow_ended) return true
  if (!facts?.waits) return false
  await tx.query(
    // `waits_for` is cleared: otherwise the outcome "waits for tokens" would be carried to the task once again.
    `update agent_runs set is_task_open = true, waits_for = null, ready_at = coalesce(ready_at, muster.now()) where id = $1`,
    [earlier.id],
  )
  return true
}

/** A person's wish is to continue; an automatic retry continues only a history that can be continued. */
async function mayContinue(tx: Db, task: AttemptedTask, earlier: EarlierRun): Promise<boolean> {
  if (earlier.agent_id !== task.assigned_to || earlier.status === 'completed' || earlier.continued_by !== null)
    return false
  if (task.cleared_run_id === earlier.id) return false
  if (task.flow_type !== 'flow' && (await hasStartedFlow(tx, earlier.id))) return false
  if (task.is_resumed) return true
  return canContinue(earlier) && (await lostTools(tx, earlier.id, { ...task, id: earlier.agent_id ?? '' })).length === 0
}

async function continueAttempt(tx: Db, task: AttemptedTask, earlier: EarlierRun): Promise<string> {
  // An attempt that only stopped is not told so.
  const isTold = earlier.pause_reason !== 'stopped' && task.flow_type !== 'flow'
  const byPerson = task.is_resumed ? { resumed_by: 'person' } : {}
  return insertContinuation(tx, earlier, {
    trigger: { type: 'task', task_id: task.id, ...byPerson },
    taskId: task.id,
    input: isTold ? continuationText(task) : null,
    maxSteps: task.max_steps,
    timeoutMs: task.default_timeout,
  })
}
