import { silentLog } from '../kernel/log.ts'
import { repeat } from '../kernel/repeat.ts'
import { addMissingSchedules } from './schedules.ts'
import { dueWithin, type TickParts, tick, watch } from './tick.ts'

export interface Scheduler {
  stop(): Promise<void>
}

const LONGEST_SLEEP_MS = 1_000
/** The sleep while another process starts the runs that are due. */
const SHORTEST_SLEEP_MS = 50

/**
 * Every process that executes runs has a scheduler. It sleeps until a schedule is due, but at most a second, so that it
 * sees schedules changed by other processes. The process's own clock decides only how long it sleeps.
 */
export function startScheduler(parts: TickParts): Scheduler {
  const { pool, log } = parts
  let hasAddedMissing = false
  let dueInMs: number | null = null
  const work = async (): Promise<void> => {
    dueInMs = null
    if (!hasAddedMissing) await addMissingSchedules(pool, log)
    hasAddedMissing = true
    const inMs = await dueWithin(pool, LONGEST_SLEEP_MS)
    const isDue = inMs !== null && inMs <= 0
    if (isDue) await tick(parts)
    dueInMs = isDue ? await dueWithin(pool, LONGEST_SLEEP_MS) : inMs
  }
  const everyMs = (): number => Math.max(SHORTEST_SLEEP_MS, Math.ceil(dueInMs ?? LONGEST_SLEEP_MS))
  const rounds = repeat({ work, everyMs, ifItFails: 'scheduled runs will be started later', log })
  // The watch runs beside the rounds: a slow round under load must not look like an outage.
  const looks = repeat({
    work: () => watch(pool),
    everyMs: LONGEST_SLEEP_MS,
    ifItFails: 'schedules are not watched',
    log: silentLog,
  })
  return {
    stop: async () => {
      await Promise.all([rounds(), looks()])
    },
  }
}
