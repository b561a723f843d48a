import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { insertRun, type NewRun } from './insert-run.ts'

/**
 * Inserts a sub-run and counts it as open on its parent, both or neither, once per id. `child` is called in that
 * transaction. Returns false if the parent is no longer this owner's or was cancelled.
 */
export async function spawnRun(
  pool: Pool,
  parent: { id: string; fence: number },
  child: NewRun | ((tx: Db) => Promise<NewRun>),
): Promise<boolean> {
  return inTransaction(pool, async (tx) => {
    const { rowCount } = await tx.query(
      'select from agent_runs where id = $1 and fence = $2 and cancel_requested_at is null for update',
      [parent.id, parent.fence],
    )
    if (!rowCount) return false
    if (await insertRun(tx, typeof child === 'function' ? await child(tx) : child)) {
      await tx.query('update agent_runs set open_children = open_children + 1 where id = $1', [parent.id])
    }
    return true
  })
}
