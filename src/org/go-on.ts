import type { Db } from '../db/pool.ts'
import { insertRun } from '../journal/insert-run.ts'
import { newId } from '../kernel/id.ts'
import type { WorkTask } from './work-row.ts'

interface EarlierAttempt {
  pause_reason: string | null
  completed_at: Date | null
  last_seq: number
  step_count: number
  rights: Record<string, unknown>
}

type Resumed = WorkTask & { max_steps: number | null; default_timeout: number | null }

/** The id of the run that goes on where an interrupted attempt stood, or null if there is nothing to go on from. */
export async function goOn(tx: Db, task: Resumed): Promise<string | null> {
  if (task.attempt_run_id === null) return null
  const { rows } = await tx.query<EarlierAttempt>(
    `select pause_reason, completed_at, last_seq, step_count, rights from agent_runs
     where id = $1 and agent_id = $2 and status = 'paused' for update`,
    [task.attempt_run_id, task.assigned_to],
  )
  const earlier = rows[0]
  if (!earlier) return null
  if (earlier.completed_at === null && earlier.pause_reason === 'budget') {
    await tx.query(
      // It waits for nothing any more: otherwise its outcome, "waits for tokens", would be carried over once again.
      `update agent_runs set is_task_open = true, waits_for = null, ready_at = coalesce(ready_at, muster.now()) where id = $1`,
      [task.attempt_run_id],
    )
    return task.attempt_run_id
  }
  return earlier.pause_reason === 'stopped' ? continueRun(tx, task, task.attempt_run_id, earlier) : null
}

async function continueRun(tx: Db, task: Resumed, runId: string, earlier: EarlierAttempt): Promise<string> {
  const id = newId()
  const { last_seq: seq, step_count: steps, rights } = earlier
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
    base: { runId, seq, steps },
  })
  return id
}
