// The time of one call of a stage. Waits do not count: a function says when it waits, and an agent's run that has started
// has a timeout of its own, so that only a run that has not begun in time is late.
import type { WhileIdle } from '../definition/function-context.ts'

export interface StageClock {
  whileIdle: WhileIdle
  /** When the time is up, the call is late only if this says so. */
  lateIf(check: () => Promise<boolean>): void
  end(): void
}

/** `onLate` is called once at most. Without a timeout it is never called. */
export function startStageClock(timeoutMs: number | undefined, onLate: () => void): StageClock {
  let isLate = async (): Promise<boolean> => true
  let leftMs = timeoutMs ?? 0
  let sinceMs = 0
  let waits = 0
  let isOver = timeoutMs === undefined
  let timer: NodeJS.Timeout | undefined
  const run = (): void => {
    sinceMs = performance.now()
    if (!isOver) timer = setTimeout(ring, leftMs)
  }
  const ring = async (): Promise<void> => {
    // If the database is away, the next look decides.
    const mustEnd = await isLate().catch(() => false)
    if (isOver || waits > 0) return
    if (mustEnd) {
      isOver = true
      return onLate()
    }
    leftMs = timeoutMs ?? 0
    run()
  }
  run()
  return {
    whileIdle: async (wait) => {
      if (waits++ === 0) {
        clearTimeout(timer)
        leftMs = Math.max(0, leftMs - (performance.now() - sinceMs))
      }
      try {
        return await wait()
      } finally {
        if (--waits === 0) run()
      }
    },
    lateIf: (check) => {
      isLate = check
    },
    end: () => {
      isOver = true
      clearTimeout(timer)
    },
  }
}
