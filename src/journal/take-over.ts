import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { appendBatch } from './append-batch.ts'
import { entriesOf, type NewEvent, prepare } from './entries.ts'
import { type FreedRun, freeRuns } from './free-runs.ts'
import type { RunChange } from './run-change.ts'

/** A run that brings its process down this often is given up. */
const MOST_CRASHES = 5

/**
 * Frees the runs of a process that died. `forget` removes the process in the same transaction and answers whether it
 * was still there, so that of several who notice only one counts the crash.
 */
export async function takeOver(pool: Pool, owner: string, forget: (tx: Db) => Promise<boolean>): Promise<number> {
  return inTransaction(pool, async (tx) => {
    if (!(await forget(tx))) return 0
    const freed = await freeRuns(tx, 'owned', { crashes: 1, values: [owner] })
    for (const run of freed) await noteCrash(tx, run)
    return freed.length
  })
}

async function noteCrash(tx: Db, { id, ancestors, crashes }: FreedRun): Promise<void> {
  const recovered = { kind: 'run.recovered', data: { crashes } }
  const append = (events: NewEvent[], change?: RunChange) =>
    appendBatch(tx, entriesOf([prepare({ runId: id, fence: null, events, ancestors, ...(change ? { change } : {}) })]))
  if (crashes < MOST_CRASHES) {
    await append([recovered])
    return
  }
  const error = {
    error_code: 'CRASH_LOOP',
    error_message: `The process that worked on this run died ${crashes} times; it is not tried again.`,
  }
  await append([recovered, { kind: 'run.failed', data: { ...error, summary: null } }], {
    set: { status: 'failed', ...error, ended: true },
  })
}

/** Gives back what this very process owns and no longer works on: after an outage that outlasted its lease. */
export async function releaseOwn(db: Db, owner: string, except: readonly string[]): Promise<number> {
  return (await freeRuns(db, 'owned_elsewhere', { crashes: 0, values: [owner, except] })).length
}

/** Runs whose owner is registered nowhere: it was forgotten before it had given them back. */
export async function releaseOwnerless(db: Db): Promise<number> {
  return (await freeRuns(db, 'ownerless', { crashes: 0 })).length
}
