import { type EndedRows, removeEnded } from '../db/in-batches.ts'
import type { Pool } from '../db/pool.ts'

const MESSAGES: EndedRows = {
  table: 'agent_messages',
  at: 'created_at',
  carried: ['task_id'],
  stays: 'exists (select from tasks o where o.id = t.task_id and o.completed_at is null)',
}

/**
 * Removes messages older than their project keeps runs, and returns their number. A message about an open task stays:
 * the messages of a task are counted to tell a new message from a repeated one.
 */
export const pruneMessages = (
  pool: Pool,
  retention: { projectId: string; days: number },
  signal?: AbortSignal,
): Promise<number> => removeEnded(pool, MESSAGES, retention, signal)
