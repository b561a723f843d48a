// Looks at the other workers over this database, judges which of them are dead, and has their work taken over.
import type { Db, Pool } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import { forgetDead, type Sighting, sightOthers } from './workers.ts'

export interface WatchOptions {
  pool: Pool
  log: Log
  ownerId: () => string
  /** The time for which this process has renewed its own lease without a gap. */
  steadyForMs: (at: number) => number
  leaseMs: number
  /** Called when another worker is dead. `forget` removes it within a transaction and returns whether it was there. */
  onDeath: (workerId: string, forget: (tx: Db) => Promise<boolean>) => Promise<void>
}

const LOOK_EVERY_MS = 1_000
/** The interval of the looks while another worker holds no lock. */
const LOOK_CLOSELY_EVERY_MS = 250
/** A worker without a lock is dead after this many missed renewals; fewer may be a hiccup of its network. */
export const MISSED_BEATS = 2.5

export function watchWorkers({ pool, log, ownerId, steadyForMs, leaseMs, onDeath }: WatchOptions) {
  let others = 0
  let someHoldNoLock = false
  return {
    hasAny: (): boolean => others > 0,
    /** The time until the next look: shorter while some other worker holds no lock. */
    lookEveryMs: (): number => Math.min(someHoldNoLock ? LOOK_CLOSELY_EVERY_MS : LOOK_EVERY_MS, leaseMs),
    /** `isAlone`: every other worker is dead. */
    look: async (isAlone: boolean): Promise<void> => {
      const sightings = await sightOthers(pool, ownerId())
      others = sightings.length
      someHoldNoLock = sightings.some((sighting) => sighting.isUnlocked)
      const at = performance.now()
      const failures: unknown[] = []
      for (const sighting of sightings) {
        if (!isAlone && !isDead(sighting, at)) continue
        log.warn({ worker: sighting.id }, 'a worker is dead; its runs are taken over')
        // A takeover that fails does not keep the runs of the next dead worker waiting.
        await onDeath(sighting.id, (tx) => forgetDead(tx, sighting)).catch((error) => failures.push(error))
      }
      if (failures.length > 0) throw failures[0]
    },
  }

  /** A process judges another only after it has itself been steady for as long: a lease, or the missed renewals. */
  function isDead({ hasLapsed: lapsed, isUnlocked, silentForMs, beatMs: otherBeatMs }: Sighting, at: number): boolean {
    const steadyMs = steadyForMs(at)
    if (lapsed && steadyMs > leaseMs) return true
    const graceMs = MISSED_BEATS * otherBeatMs
    return isUnlocked && silentForMs >= graceMs && steadyMs >= graceMs
  }
}
