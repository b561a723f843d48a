import { type EndedRows, removeEnded } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

const MESSAGES: EndedRows = {
  table: 'agent_messages',
  at: 'created_at',
  carried: ['task_id'],
  stays: 'exists (select from tasks o where o.id = t.task_id and o.completed_at is null)',
}

/**
 * Removes messages that are older than their project keeps runs. A message about a task stays while the task is open:
 * the messages of a task are counted to tell a new one from a repeated one. Returns the number of removed messages.
 */
export const pruneMessages = (
  pool: Pool,
  retention: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> => removeEnded(pool, MESSAGES, retention, signal)
