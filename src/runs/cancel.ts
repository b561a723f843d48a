import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Journal } from '../journal/append.ts'
import { lockTree, type OpenRun } from '../journal/lock-tree.ts'
import { CANCEL_CHANNEL, tellProcesses } from '../journal/wake.ts'
import { fault } from '../kernel/fault.ts'
import { closeQuestions } from '../tasks/close-questions.ts'
import { cancelled } from './end.ts'

/**
 * Cancel is a fact in the database. Runs without owner end here; the owners of the others hear of it, stop at once and
 * write the end with the text so far. Sub-runs go with their parents, the deepest first.
 */
export async function cancelRuns(
  { pool, journal }: { pool: Pool; journal: Journal },
  projectId: string,
  runIds: readonly string[],
  /** In the same transaction, when the runs are locked and before any of them ends. */
  first: (tx: Db) => Promise<void> = async () => {},
): Promise<void> {
  const owned = await inTransaction(pool, async (tx) => {
    const open = await lockTree(tx, projectId, runIds)
    await first(tx)
    const fresh = open.filter((run) => run.cancel_requested_at === null)
    await tx.query('update agent_runs set cancel_requested_at = muster.now() where id = any($1)', [
      fresh.map((run) => run.id),
    ])
    for (const { id, ancestors, owner } of fresh) {
      if (owner !== null) {
        const asked = { kind: 'run.cancel_requested', data: {} }
        await journal.appendIn(tx, { runId: id, fence: null, events: [asked], ancestors })
        continue
      }
      // Its end comes after theirs, in its stream too: the last of them to end wakes it.
      if (await waitsForChildren(tx, id)) continue
      const end = cancelled(await lastText(tx, id))
      await journal.appendIn(tx, { runId: id, fence: null, events: [end.event], change: { set: end.set }, ancestors })
    }
    await wakeSleepers(tx, open)
    await closeQuestions(
      tx,
      open.map((run) => run.id),
    )
    return open.filter((run) => run.owner !== null).map((run) => run.id)
  })
  await fault('cancel.mid')
  for (const id of owned) await tellProcesses(pool, CANCEL_CHANNEL, id)
}

/** Runs that were cancelled before and that nobody has ended since: their next owner does. */
async function wakeSleepers(tx: Db, open: readonly OpenRun[]): Promise<void> {
  const ids = open.filter((run) => run.cancel_requested_at !== null && run.owner === null).map((run) => run.id)
  if (ids.length === 0) return
  await tx.query(
    `update agent_runs set ready_at = muster.now()
     where id = any($1) and owner is null and ready_at is null and completed_at is null and open_children <= 0`,
    [ids],
  )
}

/** Of its sub-runs some are in somebody's hands still. */
async function waitsForChildren(tx: Db, runId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update agent_runs set status = 'running', pause_reason = null, waits_for = 'children', ready_at = null, wake_at = null
     where id = $1 and open_children > 0`,
    [runId],
  )
  return rowCount === 1
}

async function lastText(tx: Db, runId: string): Promise<string | null> {
  const { rows } = await tx.query<{ text: string | null }>(
    `select data->>'text' as text from run_events where run_id = $1 and kind = 'step.completed' and data->>'run_id' is null
     order by seq desc limit 1`,
    [runId],
  )
  return rows[0]?.text ?? null
}
