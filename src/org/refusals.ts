import type { Db } from '../db/pool.ts'
import type { ClaimedRun } from '../journal/claim.ts'
import type { Log } from '../kernel/log.ts'
import { noteOperation } from '../kernel/operation.ts'

type Refused = Pick<ClaimedRun, 'id' | 'project_id' | 'agent_id' | 'task_id'>

/** Logs the refusal of an agent's action, with the task that the agent was working on. Never throws. */
export async function logRefusal(
  db: Db,
  log: Log,
  run: Refused,
  refused: 'task.refused' | 'budget.refused',
): Promise<void> {
  const { id: run_id, project_id, agent_id, task_id } = run
  const correlation_id = task_id === null ? null : await rootOf(db, task_id).catch(() => null)
  noteOperation(log, refused, { project_id, agent_id, task_id, run_id, correlation_id })
}

async function rootOf(db: Db, taskId: string): Promise<string | null> {
  const { rows } = await db.query<{ id: string }>('select coalesce(root_task_id, id) as id from tasks where id = $1', [
    taskId,
  ])
  return rows[0]?.id ?? null
}
