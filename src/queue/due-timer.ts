import type { Log } from '../kernel/log.ts'

/** Rows that are due later than this are left to the sweeps. */
const LONGEST_TIMER_MS = 60_000

export interface DueTimerOptions {
  /** The name of the rows in the log, such as "runs". */
  name: string
  promote: () => Promise<unknown>
  onPromoted: () => void
  log: Log
}

/** Returns the function that says in how many milliseconds a row is due. Without it a sweep would wake the row late. */
export function createDueTimer({ name, promote, onPromoted, log }: DueTimerOptions): (inMs: number) => void {
  const wake = (): void => {
    promote().then(onPromoted, (error: unknown) =>
      log.debug({ err: error }, `${name} that are due will be woken by the next sweep`),
    )
  }
  return (inMs) => {
    if (inMs < LONGEST_TIMER_MS) setTimeout(wake, inMs + 1).unref()
  }
}
