import { silentLog } from '../kernel/log.ts'
import { repeat } from '../queue/repeat.ts'
import { addMissingSchedules } from './schedules.ts'
import { dueWithin, type TickParts, tick, watch } from './tick.ts'

export interface Scheduler {
  /** Ends the rounds; one that is under way is waited for. */
  stop(): Promise<void>
}

const LONGEST_SLEEP_MS = 1_000
/** The sleep while another process starts the runs that are due. */
const SHORTEST_SLEEP_MS = 50

/**
 * Every process that works on runs has a scheduler. It sleeps until a schedule is due, a second at most: a schedule
 * that another process changed is seen by then. The process's own clock only says how long it sleeps.
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
  // The watch runs beside the rounds: a round that takes long under load must not look as if no process had been there.
  // The rounds log that the database is away.
  const looks = repeat({ work: () => watch(pool), everyMs, ifItFails: 'schedules are not watched', log: silentLog })
  return {
    stop: async () => {
      await Promise.all([rounds(), looks()])
    },
  }
}
