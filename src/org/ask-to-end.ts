import type { Db } from '../db/pool.ts'
import { lockTree } from '../journal/lock-tree.ts'
import { CANCEL_CHANNEL } from '../journal/wake.ts'
import { closeQuestions } from '../tasks/close-questions.ts'
import { withdrawOutcomeTasks } from '../tasks/outcome-tasks.ts'

/** Cancels unwanted attempts, with the runs below them. Sleeping runs are woken, so that they end. */
export async function askToEnd(tx: Db, runIds: readonly (string | null)[]): Promise<void> {
  const ids = runIds.filter((id) => id !== null)
  if (ids.length === 0) return
  const open = (await lockTree(tx, null, ids)).map((run) => run.id)
  await tx.query(
    `with asked as (
       update agent_runs set cancel_requested_at = coalesce(cancel_requested_at, muster.now()),
         ready_at = case when owner is null and (open_children <= 0 or started_flow_run_id is not null) then coalesce(ready_at, muster.now()) else ready_at end
       where id = any($1) returning id, owner
     )
     select pg_notify('${CANCEL_CHANNEL}', id::text) from asked where owner is not null`,
    [open],
  )
  await closeQuestions(tx, open)
  // An attempt that paused for decisions has ended; its task no longer waits for them.
  await withdrawOutcomeTasks(tx, ids)
}
