import { explainFailure } from '../db/failures.ts'
import type { Pool } from '../db/pool.ts'
import { promoteDueRuns } from '../journal/claim.ts'
import { releaseOwnerless } from '../journal/take-over.ts'
import { wakeOverlooked, wakeWaiting } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { findAnsweredRuns } from '../tasks/answered-runs.ts'

const LOOK_FOR_OVERLOOKED_EVERY = 5

/** What a process does every second for all runs, whoever owns them. */
export interface Recovery {
  /** Rethrows where the database refuses; `sweep` is then the one to try again. */
  sweep(): Promise<void>
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
    sweep: async () => {
      try {
        await recover(rounds++ % LOOK_FOR_OVERLOOKED_EVERY === 0)
        succeededAt = performance.now()
        if (isFailing) log.info({}, 'runs are recovered again')
        isFailing = false
      } catch (error) {
        tell(error)
        throw error
      }
    },
  }

  async function recover(isThorough: boolean): Promise<void> {
    await promoteDueRuns(pool)
    await releaseOwnerless(pool)
    if (!isThorough) return
    let woken = await wakeOverlooked(pool)
    for (const id of await findAnsweredRuns(pool)) if (await wakeWaiting(pool, id, 'human')) woken++
    if (woken > 0) log.warn({ runs: woken }, 'runs slept although what they waited for had happened; they go on')
  }

  /** A database that is away is told by others. Anything else keeps runs from being recovered, and must be seen. */
  function tell(error: unknown): void {
    const isLong = performance.now() - succeededAt > FAILING_AFTER_MS
    if (isFailing || (explainFailure(error)?.code === 'UNAVAILABLE' && !isLong)) return
    isFailing = true
    log.error({ err: error }, 'runs cannot be recovered; this is tried again every second')
  }
}
