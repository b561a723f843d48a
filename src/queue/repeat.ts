import type { Log } from '../kernel/log.ts'
import type { Health } from './health.ts'

export interface Rounds {
  work: () => Promise<unknown>
  everyMs: number
  /** Gives, after a round that succeeded, the time until the next one. Without it, `everyMs` holds. */
  nextInMs?: () => Promise<number>
  /** The sentence for the log that says what happens to the work then. */
  ifItFails: string
  /** Set if others wait for the work: it is told of successes and failures, and it logs the failures. */
  health?: Health
  log: Log
}

/**
 * Repeats the work in rounds that never overlap, the first at once. A failure is logged once, until a round succeeds
 * again. Returns the function that stops the rounds and waits for one under way.
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
