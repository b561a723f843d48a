import type { Pool } from '../db/pool.ts'
import { promoteDueRuns } from '../journal/claim.ts'
import { READY_CHANNEL, tellProcesses } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { createDueTimer } from '../queue/due-timer.ts'
import type { Slots } from '../queue/slots.ts'

export interface RunOfferOptions {
  pool: Pool
  slots: Slots
  isWorker: boolean
  hasOthers: () => boolean
  poke: () => void
  log: Log
}

/** Ready runs are taken here if a slot is free, and offered to other processes if none is. */
export function createRunOffers({ pool, slots, isWorker, hasOthers, poke, log }: RunOfferOptions) {
  let isClosed = false
  let offering: Promise<void> | null = null
  const dueIn = createDueTimer({ name: 'runs', promote: () => promoteDueRuns(pool), onPromoted: () => onReady(), log })

  function onReady(inMs = 0): void {
    if (isClosed) return
    if (inMs > 0) dueIn(inMs)
    else if (slots.free() > 0) poke()
    else toOthers()
  }

  function toOthers(): void {
    // A process that joins meanwhile looks by itself.
    if (isWorker && !hasOthers()) return
    offering ??= tellProcesses(pool, READY_CHANNEL)
      .catch((error: unknown) => log.debug({ err: error }, 'other processes will see ready runs at their next sweep'))
      .finally(() => {
        offering = null
      })
  }

  return {
    onReady,
    toOthers,
    close: (): void => {
      isClosed = true
    },
    settled: async (): Promise<void> => {
      await offering
    },
  }
}
