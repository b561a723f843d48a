import type { Log } from '../kernel/log.ts'
import type { Health } from './health.ts'

export interface Rounds {
  work: () => Promise<unknown>
  everyMs: number
  /** Asked after a round that succeeded, where that decides when the next one is due. */
  nextInMs?: () => Promise<number>
  /** What then becomes of it, for the log. */
  ifItFails: string
  /** Where others wait for it: whether it succeeds is counted there, and said by it. */
  health?: Health
  log: Log
}

/**
 * Rounds that never overlap, the first at once. Failures are said once, until a round succeeds again. Answers the stop,
 * which waits for a round that is under way.
 */
export function repeat({ work, everyMs, nextInMs, ifItFails, health, log }: Rounds): () => Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  let hasFailed = false
  let running = Promise.resolve()
  const round = async (): Promise<void> => {
    let sleepMs = everyMs
    try {
      await work()
      if (nextInMs) sleepMs = await nextInMs()
      health?.succeeded()
      hasFailed = false
    } catch (error) {
      if (health) health.failed(error)
      else if (!hasFailed) log.warn({ err: error }, ifItFails)
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
