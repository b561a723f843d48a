// Home makes a dozen reads for each project, and the server counts the requests of an address by the second. The pace
// lets reads start at a bounded rate, those of the newest projects first.

export interface Pace {
  /** Resolves when the read may start. The lowest rank is first. Rejects if the signal is aborted before that. */
  enter(rank: number, signal: AbortSignal): Promise<void>
}

interface PaceOptions {
  /** Reads that may start at once after a rest. */
  burst: number
  perSecond: number
  now?: () => number
}

interface Entry {
  rank: number
  start: () => void
}

const EVERY_MS = 100

export function createPace({ burst, perSecond, now = Date.now }: PaceOptions): Pace {
  let waiting: Entry[] = []
  let free = burst
  let filledAt = now()
  let isTicking = false

  const tick = (): void => {
    const at = now()
    free = Math.min(burst, free + (Math.max(0, at - filledAt) * perSecond) / 1_000)
    filledAt = at
    const count = Math.floor(free)
    const sorted = waiting.toSorted((a, b) => a.rank - b.rank)
    const starting = sorted.slice(0, count)
    waiting = sorted.slice(count)
    free -= starting.length
    isTicking = waiting.length > 0
    if (isTicking) setTimeout(tick, EVERY_MS)
    for (const { start } of starting) start()
  }

  return {
    enter: (rank, signal) =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted()
        const drop = (): void => {
          waiting = waiting.filter((each) => each !== entry)
          reject(signal.reason)
        }
        const start = (): void => {
          signal.removeEventListener('abort', drop)
          resolve()
        }
        const entry: Entry = { rank, start }
        signal.addEventListener('abort', drop, { once: true })
        waiting.push(entry)
        // The reads of one render are all there before the first one starts.
        if (!isTicking) setTimeout(tick, 0)
        isTicking = true
      }),
  }
}
