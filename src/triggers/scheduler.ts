import { type Log, silentLog } from '../kernel/log.ts'
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
  const round = async (): Promise<number> => {
    if (!hasAddedMissing) await addMissingSchedules(pool, log)
    hasAddedMissing = true
    await tick(parts)
    const dueInMs = (await dueWithin(pool, LONGEST_SLEEP_MS)) ?? LONGEST_SLEEP_MS
    return Math.max(SHORTEST_SLEEP_MS, Math.ceil(dueInMs))
  }
  const rounds = repeat('scheduled runs will be started later', round, log)
  // Beside the rounds: one that takes long under load must not look as if nobody had been there. Rounds look too, and
  // say what is wrong.
  const looks = repeat('schedules are not watched', () => look(pool), silentLog)
  return {
    stop: async () => {
      await Promise.all([rounds(), looks()])
    },
  }
}

async function look(pool: TickParts['pool']): Promise<number> {
  await watch(pool)
  return LONGEST_SLEEP_MS
}

/** `work` says how long to sleep before the next round. Failures are said once, until a round succeeds again. */
function repeat(ifItFails: string, work: () => Promise<number>, log: Log): () => Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  let hasFailed = false
  let running = Promise.resolve()
  const round = async (): Promise<void> => {
    let sleepMs = LONGEST_SLEEP_MS
    try {
      sleepMs = await work()
      hasFailed = false
    } catch (error) {
      if (!hasFailed) log.warn({ err: error }, ifItFails)
      hasFailed = true
    }
    if (!isStopped) timer = setTimeout(start, sleepMs)
  }
  const start = (): void => {
    running = round()
  }
  start()
  return async () => {
    isStopped = true
    clearTimeout(timer)
    await running
  }
}
