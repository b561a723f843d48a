import { isUnavailable } from '../db/failures.ts'
import type { Log } from '../kernel/log.ts'

/** Watches whether repeated work still succeeds. Runs wait for such work, so people must see when it fails. */
export interface Health {
  succeeded(): void
  failed(error: unknown): void
  /** False when no round has succeeded for `unwellAfterMs`: the work fails, or it hangs. */
  isWell(): boolean
}

export interface HealthOptions {
  log: Log
  /** The sentence for the log, such as "runs cannot be recovered". */
  ifItFails: string
  unwellAfterMs: number
  /** Milliseconds that only go forward. */
  now?: () => number
}

export const UNWELL_AFTER_MS = 10_000

/** Logs a failure as an error, once until the work succeeds again. */
export function createHealth({ log, ifItFails, unwellAfterMs, now = () => performance.now() }: HealthOptions): Health {
  let succeededAt = now()
  let isTold = false
  const isWell = (): boolean => now() - succeededAt <= unwellAfterMs
  return {
    isWell,
    succeeded: () => {
      succeededAt = now()
      if (isTold) log.info({}, `the work succeeds again after this failure: ${ifItFails}`)
      isTold = false
    },
    failed: (error) => {
      if (isTold || (isWell() && isUnavailable(error))) return
      isTold = true
      log.error({ err: error }, `${ifItFails}; the work is retried`)
    },
  }
}
