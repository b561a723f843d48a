import { explainFailure } from '../db/failures.ts'
import type { Pool } from '../db/pool.ts'
import { promoteDueRuns } from '../journal/claim.ts'
import { releaseOwnerless } from '../journal/take-over.ts'
import { wakeOverlooked, wakeWaiting } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { findAnsweredRuns } from '../tasks/answered-runs.ts'
import { lookAtRuns, type RunsSeen } from './look-at-runs.ts'

const LOOK_FOR_OVERLOOKED_EVERY = 5

/** What a process does every second for all runs, whoever owns them. */
export interface Recovery {
  /** Rethrows where the database refuses, as `sweep` does: both are then tried again. */
  look(owner: string): Promise<RunsSeen>
  /** Answers whether runs became ready. */
  sweep(seen: RunsSeen): Promise<boolean>
  /** False when it has failed for so long that runs may be waiting for it. */
  isWorking(): boolean
}

const FAILING_AFTER_MS = 10_000

export function createRecovery(pool: Pool, log: Log): Recovery {
  let rounds = 0
  let succeededAt = performance.now()
  let isFailing = false
  return {
    isWorking: () => performance.now() - succeededAt <= FAILING_AFTER_MS,
    look: (owner) => telling(() => lookAtRuns(pool, owner)),
    sweep: (seen) =>
      telling(async () => {
        const count = await recover(seen, rounds++ % LOOK_FOR_OVERLOOKED_EVERY === 0)
        succeededAt = performance.now()
        if (isFailing) log.info({}, 'runs are recovered again')
        isFailing = false
        return count > 0
      }),
  }

  async function telling<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      tell(error)
      throw error
    }
  }

  async function recover(seen: RunsSeen, isThorough: boolean): Promise<number> {
    let count = seen.has_due ? await promoteDueRuns(pool) : 0
    if (seen.has_orphans) count += await releaseOwnerless(pool)
    if (!isThorough) return count
    let woken = await wakeOverlooked(pool)
    for (const id of await findAnsweredRuns(pool)) if (await wakeWaiting(pool, id, 'human')) woken++
    if (woken > 0) log.warn({ runs: woken }, 'runs slept although what they waited for had happened; they go on')
    return count + woken
  }

  /** A database that is away is told by others. Anything else keeps runs from being recovered, and must be seen. */
  function tell(error: unknown): void {
    const isLong = performance.now() - succeededAt > FAILING_AFTER_MS
    if (isFailing || (explainFailure(error)?.code === 'UNAVAILABLE' && !isLong)) return
    isFailing = true
    log.error({ err: error }, 'runs cannot be recovered; this is tried again every second')
  }
}
