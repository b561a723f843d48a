import type { Db } from '../db/pool.ts'
import { wakeWaiting } from '../journal/wake.ts'

/** A cancelled run no longer waits for people: its questions, and its calls that wait for approval, leave the inbox. */
export async function closeQuestions(db: Db, runIds: readonly string[]): Promise<void> {
  await db.query(
    `update tasks set status = 'cancelled', completed_at = muster.now()
     where run_id = any($1) and (kind = 'escalation' or call is not null) and status in ('pending', 'in-progress')`,
    [runIds],
  )
}

/** A run that has ended makes no calls: those that wait for approval leave the inbox. */
export async function closeCalls(db: Db, runIds: readonly string[]): Promise<void> {
  await db.query(
    `update tasks set status = 'cancelled', completed_at = muster.now()
     where run_id = any($1) and call is not null and status = 'pending'`,
    [runIds],
  )
}

/** The runs of a deleted agent make no calls any more. They are woken, find their agent deleted, and end. */
export async function closeCallsOfAgent(tx: Db, agent: { id: string; project_id: string }): Promise<void> {
  const { rows } = await tx.query<{ run_id: string }>(
    `update tasks t set status = 'cancelled', completed_at = muster.now() from agent_runs r
     where r.project_id = $2 and r.agent_id = $1 and r.status in ('running', 'paused') and r.completed_at is null
       and t.run_id = r.id and t.call is not null and t.status = 'pending' returning t.run_id`,
    [agent.id, agent.project_id],
  )
  for (const runId of new Set(rows.map((row) => row.run_id))) await wakeWaiting(tx, runId, 'human')
}
