import type { Pool } from '../db/pool.ts'
import { promoteDueRuns } from '../journal/claim.ts'
import { releaseOwnerless } from '../journal/take-over.ts'
import { wakeOverlooked, wakeWaiting } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { createHealth } from '../queue/health.ts'
import { findAnsweredRuns } from '../tasks/answered-runs.ts'

const LOOK_FOR_OVERLOOKED_EVERY = 5

/** What a process does every second for all runs, whoever owns them. */
export interface Recovery {
  /** Never throws: it says in the log where it fails, and is tried again with the next sweep. */
  sweep(): Promise<void>
  /** False when it has failed for so long that runs may be waiting for it. */
  isWorking(): boolean
}

export function createRecovery(pool: Pool, log: Log, unwellAfterMs: number): Recovery {
  const health = createHealth({ log, ifItFails: 'runs cannot be recovered', unwellAfterMs })
  let sinceOverlooked = LOOK_FOR_OVERLOOKED_EVERY
  return {
    isWorking: health.isWell,
    sweep: async () => {
      try {
        await recover()
        health.succeeded()
      } catch (error) {
        health.failed(error)
      }
    },
  }

  async function recover(): Promise<void> {
    await promoteDueRuns(pool)
    await releaseOwnerless(pool)
    // Where it fails it stays due: the sweeps in between would make it look as if all were well.
    if (++sinceOverlooked <= LOOK_FOR_OVERLOOKED_EVERY) return
    let woken = await wakeOverlooked(pool)
    for (const id of await findAnsweredRuns(pool)) if (await wakeWaiting(pool, id, 'human')) woken++
    sinceOverlooked = 1
    if (woken > 0) log.warn({ runs: woken }, 'runs slept although what they waited for had happened; they go on')
  }
}
