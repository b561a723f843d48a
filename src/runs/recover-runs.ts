import type { Pool } from '../db/pool.ts'
import { promoteDueRuns } from '../journal/claim.ts'
import { releaseOwnerless } from '../journal/take-over.ts'
import { wakeOverlooked, wakeWaiting } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { createHealth } from '../queue/health.ts'
import { findAnsweredRuns } from '../tasks/answered-runs.ts'
import { lookAtRuns, type RunsSeen } from './look-at-runs.ts'

const LOOK_FOR_OVERLOOKED_EVERY = 5

/** The work that a process does every second for all runs, whichever process owns them. */
export interface Recovery {
  /**
   * Answers what was seen of the runs, and whether some became ready. Throws if the look itself fails; a later failure
   * is logged, and its work is tried again with the next sweep.
   */
  sweep(owner: string): Promise<{ seen: RunsSeen; isReady: boolean }>
  /** False when recovery has failed for so long that runs may be waiting for it. */
  isWorking(): boolean
}

export function createRecovery(pool: Pool, log: Log, unwellAfterMs: number): Recovery {
  const health = createHealth({ log, ifItFails: 'runs cannot be recovered', unwellAfterMs })
  let sinceOverlooked = LOOK_FOR_OVERLOOKED_EVERY
  return {
    isWorking: health.isWell,
    sweep: async (owner) => {
      let seen: RunsSeen | null = null
      try {
        seen = await lookAtRuns(pool, owner)
        const count = await recover(seen)
        health.succeeded()
        return { seen, isReady: count > 0 }
      } catch (error) {
        health.failed(error)
        if (!seen) throw error
        return { seen, isReady: true }
      }
    },
  }

  async function recover(seen: RunsSeen): Promise<number> {
    let count = seen.has_due ? await promoteDueRuns(pool) : 0
    if (seen.has_orphans) count += await releaseOwnerless(pool)
    // After a failure this look stays due: the sweeps in between would make it seem that all is well.
    if (++sinceOverlooked <= LOOK_FOR_OVERLOOKED_EVERY) return count
    let woken = await wakeOverlooked(pool)
    for (const id of await findAnsweredRuns(pool)) if (await wakeWaiting(pool, id, 'human')) woken++
    sinceOverlooked = 1
    if (woken > 0) log.warn({ runs: woken }, 'runs slept although what they waited for had happened; they go on')
    return count + woken
  }
}
