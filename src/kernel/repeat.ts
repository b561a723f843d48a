import type { Log } from './log.ts'

export interface Rounds {
  work: () => Promise<unknown>
  /** The time between two rounds; as a function, it is asked after each round. */
  everyMs: number | (() => number)
  /** The first round waits as long as the others, instead of being made at once. */
  isFirstLater?: boolean
  /** The sentence for the log after a failure. */
  ifItFails: string
  level?: 'warn' | 'debug'
  /** Set if others wait for the work: it is told of successes and failures, and it logs the failures. */
  health?: { succeeded(): void; failed(error: unknown): void }
  log: Log
}

/**
 * Repeats the work in rounds that never overlap, the first at once. A failure is logged once, until a round succeeds
 * again. Returns a function that stops the rounds and waits for one under way.
 */
export function repeat(rounds: Rounds): () => Promise<void> {
  const { work, everyMs, isFirstLater = false, ifItFails, level = 'warn', health, log } = rounds
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  let hasFailed = false
  let running = Promise.resolve()
  const round = async (): Promise<void> => {
    try {
      await work()
      health?.succeeded()
      hasFailed = false
    } catch (error) {
      if (health) health.failed(error)
      else if (!hasFailed) log[level]({ err: error }, ifItFails)
      hasFailed = true
    }
    if (!isStopped) wait()
  }
  const start = (): void => {
    running = round()
  }
  const wait = (): void => {
    timer = setTimeout(start, typeof everyMs === 'function' ? everyMs() : everyMs)
  }
  if (isFirstLater) wait()
  else start()
  return async () => {
    isStopped = true
    clearTimeout(timer)
    await running
  }
}
