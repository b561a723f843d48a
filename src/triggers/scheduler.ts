import { silentLog } from '../kernel/log.ts'
import { repeat } from '../queue/repeat.ts'
import { addMissingSchedules } from './schedules.ts'
import { dueWithin, type TickParts, tick, watch } from './tick.ts'

export interface Scheduler {
  /** Ends the rounds; one that is under way is waited for. */
  stop(): Promise<void>
}

const LONGEST_SLEEP_MS = 1_000
/** What is due is being started by somebody else. */
const SHORTEST_SLEEP_MS = 50

/**
 * Every process that works on runs has one. It sleeps until something is due, a second at most: a schedule that was
 * changed by another process is seen by then. Its own clock only says how long it sleeps.
 */
export function startScheduler(parts: TickParts): Scheduler {
  const { pool, log } = parts
  let hasAddedMissing = false
  let dueInMs: number | null = null
  const work = async (): Promise<void> => {
    if (!hasAddedMissing) await addMissingSchedules(pool, log)
    hasAddedMissing = true
    dueInMs = await dueWithin(pool, LONGEST_SLEEP_MS)
    if (dueInMs === null || dueInMs > 0) return
    await tick(parts)
    dueInMs = await dueWithin(pool, LONGEST_SLEEP_MS)
  }
  const nextInMs = async (): Promise<number> => Math.max(SHORTEST_SLEEP_MS, Math.ceil(dueInMs ?? LONGEST_SLEEP_MS))
  const everyMs = LONGEST_SLEEP_MS
  const rounds = repeat({ work, everyMs, nextInMs, ifItFails: 'scheduled runs will be started later', log })
  // Beside the rounds: one that takes long under load must not look as if nobody had been there. The rounds say where the
  // database is away.
  const looks = repeat({ work: () => watch(pool), everyMs, ifItFails: 'schedules are not watched', log: silentLog })
  return {
    stop: async () => {
      await Promise.all([rounds(), looks()])
    },
  }
}
