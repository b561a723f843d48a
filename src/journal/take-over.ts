import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { appendBatch } from './append-batch.ts'
import { type Append, entriesOf, prepare } from './entries.ts'
import { type FreedRun, freeRuns, lockRuns, type Which } from './free-runs.ts'

/** A run that brings its process down this often is given up. */
const MOST_CRASHES = 5

/**
 * Frees the runs of a process that died. `forget` removes the process in the same transaction and answers whether it
 * was still there, so that of several who notice only one counts the crash.
 */
export async function takeOver(pool: Pool, owner: string, forget: (tx: Db) => Promise<boolean>): Promise<number> {
  return inTransaction(pool, async (tx) =>
    (await forget(tx)) ? recover(tx, 'owned', { crashes: 1, values: [owner] }) : 0,
  )
}

/** Gives back what this very process owns and no longer works on: after an outage that outlasted its lease. */
export async function releaseOwn(pool: Pool, owner: string, except: readonly string[]): Promise<number> {
  return inTransaction(pool, (tx) => recover(tx, 'owned_elsewhere', { crashes: 0, values: [owner, except] }))
}

/** Runs whose owner is registered nowhere: it was forgotten before it had given them back. */
export async function releaseOwnerless(pool: Pool): Promise<number> {
  return inTransaction(pool, (tx) => recover(tx, 'ownerless', { crashes: 0, values: [] }))
}

/** Frees the runs and says so in their journals: what their owner had begun has an unknown outcome, crash or not. */
async function recover(
  tx: Db,
  which: Which,
  { crashes, values }: { crashes: 0 | 1; values: readonly unknown[] },
): Promise<number> {
  if (!(await lockRuns(tx, which, values))) return 0
  const freed = await freeRuns(tx, which, { crashes, values })
  for (const run of freed) {
    // Whoever takes it next says run.started, which must come first.
    if (run.is_silent && run.crashes < MOST_CRASHES) continue
    // An ancestor that is freed too has an entry of its own; a statement changes a row once.
    await appendBatch(tx, entriesOf([prepare(recoveryOf(run))]))
  }
  return freed.length
}

function recoveryOf({ id, ancestors, crashes }: FreedRun): Append {
  const recovered = { kind: 'run.recovered', data: { crashes } }
  const append = { runId: id, fence: null, ancestors }
  if (crashes < MOST_CRASHES) return { ...append, events: [recovered] }
  const error = {
    error_code: 'CRASH_LOOP',
    error_message: `The process that worked on this run died ${crashes} times; it is not tried again.`,
  }
  const failed = { kind: 'run.failed', data: { ...error, summary: null } }
  return { ...append, events: [recovered, failed], change: { set: { status: 'failed', ...error, ended: true } } }
}
