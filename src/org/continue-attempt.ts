import type { Db } from '../db/pool.ts'
import { insertRun } from '../journal/insert-run.ts'
import { newId } from '../kernel/id.ts'
import type { WorkTask } from './work-row.ts'

interface EarlierAttempt {
  status: string
  pause_reason: string | null
  completed_at: Date | null
  last_seq: number
  step_count: number
  rights: Record<string, unknown>
  payers: string[]
}

type Resumed = WorkTask & { max_steps: number | null; default_timeout: number | null }

/**
 * Continues an interrupted attempt, by the same run or by a new one. Returns the id of that run; null if there is nothing
 * to continue.
 */
export async function continueAttempt(tx: Db, task: Resumed): Promise<string | null> {
  if (task.attempt_run_id === null) return null
  const { rows } = await tx.query<EarlierAttempt>(
    `select status, pause_reason, completed_at, last_seq, step_count, rights, payers from agent_runs
     where id = $1 and agent_id = $2 and (status = 'paused' or (is_task_open and tokens_wait_since is not null))
     for update`,
    [task.attempt_run_id, task.assigned_to],
  )
  const earlier = rows[0]
  if (!earlier) return null
  // The flow run of the attempt ended while both waited for tokens, and the attempt ends now, or has ended.
  if (earlier.status !== 'paused') return task.attempt_run_id
  if (earlier.completed_at === null && earlier.pause_reason === 'budget') {
    await tx.query(
      // `waits_for` is cleared: otherwise the outcome "waits for tokens" would be carried to the task once again.
      `update agent_runs set is_task_open = true, waits_for = null, ready_at = coalesce(ready_at, muster.now()) where id = $1`,
      [task.attempt_run_id],
    )
    return task.attempt_run_id
  }
  return earlier.pause_reason === 'stopped' ? continueRun(tx, task, task.attempt_run_id, earlier) : null
}

async function continueRun(tx: Db, task: Resumed, runId: string, earlier: EarlierAttempt): Promise<string> {
  const id = newId()
  const { last_seq: seq, step_count: steps, rights, payers } = earlier
  await insertRun(tx, {
    id,
    projectId: task.project_id,
    agentId: task.assigned_to ?? '',
    trigger: { type: 'task', task_id: task.id },
    taskId: task.id,
    maxSteps: task.max_steps,
    timeoutMs: task.default_timeout,
    chainDepth: task.chain_depth,
    input: null,
    resumedFrom: runId,
    rights,
    payers,
    base: { runId, seq, steps },
  })
  return id
}
