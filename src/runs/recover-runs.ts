import type { Pool } from '../db/pool.ts'
import { promoteDueRuns } from '../journal/claim.ts'
import type { Journal } from '../journal/journal.ts'
import { releaseOwnerless } from '../journal/take-over.ts'
import { endToolWaits, tellOfLongWaits } from '../journal/tool-waits.ts'
import { wakeOverlooked, wakeWaiting } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { createHealth } from '../queue/health.ts'
import { findAnsweredRuns } from '../tasks/answered-runs.ts'
import { closeCalls } from '../tasks/close-questions.ts'
import { askForTool, closeToolTasks } from '../tasks/tool-tasks.ts'
import { lookAtRuns, type RunsSeen } from './look-at-runs.ts'

const OVERLOOKED_EVERY_SWEEPS = 5

/** The work that a process does every second for all runs, whichever process owns them. */
export interface Recovery {
  /**
   * Returns what the look found, and whether runs may be ready. Throws if the look fails; later failures are logged,
   * and their work is tried again with the next sweep.
   */
  sweep(owner: string): Promise<{ seen: RunsSeen; mayBeReady: boolean }>
  /** False when recovery has failed for so long that runs may be waiting for it. */
  isWorking(): boolean
}

export function createRecovery(
  { pool, journal, log }: { pool: Pool; journal: Journal; log: Log },
  unwellAfterMs: number,
): Recovery {
  const health = createHealth({ log, ifItFails: 'runs cannot be recovered', unwellAfterMs })
  let sweepsUntilOverlooked = 0
  return {
    isWorking: health.isWell,
    sweep: async (owner) => {
      let seen: RunsSeen | null = null
      try {
        seen = await lookAtRuns(pool, owner)
        const count = await recover(seen)
        health.succeeded()
        return { seen, mayBeReady: count > 0 }
      } catch (error) {
        health.failed(error)
        if (!seen) throw error
        return { seen, mayBeReady: true }
      }
    },
  }

  /** Each part is tried even if the one before failed, so that a failure to promote due runs does not delay orphans. */
  async function recover(seen: RunsSeen): Promise<number> {
    const parts: (() => Promise<number>)[] = []
    if (seen.has_due) parts.push(() => promoteDueRuns(pool))
    if (seen.has_orphans) parts.push(() => releaseOwnerless({ pool, journal, onEnded: closeCalls }))
    if (seen.awaits_tools) parts.push(lookForTools)
    // After a failure this look stays due, because sweeps without it would make the recovery seem well.
    if (--sweepsUntilOverlooked < 0) parts.push(wakeAllOverlooked)
    let count = 0
    const failures: unknown[] = []
    for (const part of parts) {
      try {
        count += await part()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
    return count
  }

  async function lookForTools(): Promise<number> {
    const count = await endToolWaits(pool, closeToolTasks)
    if (count > 0) log.info({ runs: count }, 'runs continue, because a process has their tools')
    await tellOfLongWaits(pool, askForTool)
    return count
  }

  async function wakeAllOverlooked(): Promise<number> {
    const { count, halted, mayBeMore } = await wakeOverlooked(pool)
    let woken = count
    for (const id of await findAnsweredRuns(pool)) if (await wakeWaiting(pool, id, 'human')) woken++
    sweepsUntilOverlooked = mayBeMore ? 0 : OVERLOOKED_EVERY_SWEEPS - 1
    if (halted > 0) log.info({ runs: halted }, 'runs go on, because their project is not halted any more')
    if (woken > halted) log.warn({ runs: woken - halted }, 'runs slept although their wait was over; they go on')
    return woken
  }
}
