import type { Db } from '../db/pool.ts'

/** A cancelled run no longer waits for answers: its questions leave the inbox. */
export async function closeQuestions(db: Db, runIds: readonly string[]): Promise<void> {
  await db.query(
    `update tasks set status = 'cancelled', completed_at = muster.now()
     where run_id = any($1) and kind = 'escalation' and status in ('pending', 'in-progress')`,
    [runIds],
  )
}
