import type { Db } from '../db/pool.ts'

/** The number of the lock under which the tasks of the project at `$1` are taken up. */
export const TAKE_UP_LOCK = `hashtextextended('tasks ' || $1::text, 0)`

/** Nobody takes up tasks of the project until the transaction ends; whoever is at it has committed. */
export async function holdTakeUps(tx: Db, projectId: string): Promise<void> {
  await tx.query(`select pg_advisory_xact_lock(${TAKE_UP_LOCK})`, [projectId])
}
