import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { type Charge, chargeFor, MOST_CRASHES } from '../queue/queue-table.ts'
import type { Append } from './entries.ts'
import { type FreedRun, findOwned, freeRuns, lockRuns, type Which } from './free-runs.ts'
import type { Journal } from './journal.ts'

interface TakeOver {
  pool: Pool
  journal: Pick<Journal, 'appendIn'>
  /** Called for the runs that end because their processes died too often. */
  onEnded: (tx: Db, runIds: readonly string[]) => Promise<void>
}

const NO_CHARGE: Charge = { to: 'none' }

/**
 * Frees the runs of a process that died. `forget` removes the process and returns whether it was still there, so that
 * one of several observers counts the crash. `also` frees its other work. Answers the number of freed runs.
 */
export async function takeOver(
  { pool, ...parts }: TakeOver,
  owner: string,
  forget: (tx: Db) => Promise<boolean>,
  also: (tx: Db, charge: Charge) => Promise<void> = async () => {},
): Promise<number> {
  return inTransaction(pool, async (tx) => {
    const charge = await chargeFor(tx, owner)
    if (!(await forget(tx))) return 0
    const freed = await recover(tx, parts, { of: 'owner', owner }, charge)
    // The reservations of its calls are given back.
    await tx.query('delete from project_calls where worker_id = $1', [owner])
    await also(tx, charge)
    return freed.length
  })
}

/** Frees runs that this process owns and no longer works on, after an outage that outlasted its lease. */
export async function releaseOwn(parts: TakeOver, owner: string, inHand: readonly string[]): Promise<number> {
  return recoverAny(parts, { of: 'owner_elsewhere', owner, inHand })
}

/** Frees runs whose owner is registered nowhere: the owner was removed before it had given them back. */
export async function releaseOwnerless(parts: TakeOver): Promise<number> {
  return recoverAny(parts, { of: 'nobody' })
}

/** Mostly there are no such runs, and then no transaction is needed. */
async function recoverAny({ pool, ...parts }: TakeOver, which: Which): Promise<number> {
  if ((await findOwned(pool, which)).ids.length === 0) return 0
  return inTransaction(pool, async (tx) => (await recover(tx, parts, which, NO_CHARGE)).length)
}

/** Frees the runs and notes it in their journals: calls that their owner had begun have an unknown outcome. */
async function recover(
  tx: Db,
  { journal, onEnded }: Omit<TakeOver, 'pool'>,
  which: Which,
  charge: Charge,
): Promise<FreedRun[]> {
  const { ids, withAncestors } = await findOwned(tx, which)
  if (ids.length === 0) return []
  await lockRuns(tx, withAncestors)
  const owner = which.of === 'nobody' ? null : which.owner
  const freed = await freeRuns(tx, ids, { owner, charge })
  const givenUp = freed.filter((run) => run.crashes >= MOST_CRASHES)
  if (givenUp.length > 0) {
    await onEnded(
      tx,
      givenUp.map((run) => run.id),
    )
  }
  for (const run of freed) {
    // The next owner writes run.started, which must be the run's first event.
    if (run.is_silent && run.crashes < MOST_CRASHES) continue
    // Each run takes a separate statement: an ancestor may be freed too, and a statement changes a row once.
    await journal.appendIn(tx, recoveryOf(run))
  }
  return freed
}

function recoveryOf({ id, ancestors, crashes, is_charged }: FreedRun): Append {
  const recovered = { kind: 'run.recovered', data: { crashes, charged: is_charged } }
  const append = { runId: id, fence: null, ancestors }
  if (crashes < MOST_CRASHES) return { ...append, events: [recovered] }
  const error = {
    error_code: 'CRASH_LOOP',
    error_message: `The process that worked on this run died ${crashes} times; the run is not tried again.`,
  }
  const failed = { kind: 'run.failed', data: { ...error, summary: null } }
  return { ...append, events: [recovered, failed], change: { set: { status: 'failed', ...error, ended: true } } }
}
