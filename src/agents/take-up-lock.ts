// Agents do not start tasks while one of them is switched on or off, stopped or deleted. A transaction takes this lock
// before the row of an agent and before the hierarchy: in the opposite order two transactions would wait for each other.
import type { Db } from '../db/pool.ts'

/** The number of the lock under which tasks of the project at `$1` are started. */
export const TAKE_UP_LOCK = `hashtextextended('tasks ' || $1::text, 0)`

/** Waits until no process is starting tasks of the project, and lets none start any until the transaction ends. */
export async function holdTakeUps(tx: Db, projectId: string): Promise<void> {
  await tx.query(`select pg_advisory_xact_lock(${TAKE_UP_LOCK})`, [projectId])
}
