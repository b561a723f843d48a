import { explainFailure } from '../db/failures.ts'
import type { Log } from '../kernel/log.ts'

/** Whether work that is repeated for ever still succeeds. Where it does not, runs wait for it, and people must see that. */
export interface Health {
  succeeded(): void
  failed(error: unknown): void
  /** False when nothing has succeeded for so long that something may be waiting for it: it fails, or it hangs. */
  isWell(): boolean
}

export interface HealthOptions {
  log: Log
  /** For the log: "runs cannot be recovered". */
  ifItFails: string
  unwellAfterMs: number
  /** Milliseconds that only go forward. */
  now?: () => number
}

export const UNWELL_AFTER_MS = 10_000

/** A failure is an error in the log, once until it succeeds again. A database that is away for a moment is told by others. */
export function createHealth({ log, ifItFails, unwellAfterMs, now = () => performance.now() }: HealthOptions): Health {
  let succeededAt = now()
  let isTold = false
  const isWell = (): boolean => now() - succeededAt <= unwellAfterMs
  return {
    isWell,
    succeeded: () => {
      succeededAt = now()
      if (isTold) log.info({}, `this no longer holds: ${ifItFails}`)
      isTold = false
    },
    failed: (error) => {
      if (isTold || (isWell() && explainFailure(error)?.code === 'UNAVAILABLE')) return
      isTold = true
      log.error({ err: error }, `${ifItFails}; this is tried again all the time`)
    },
  }
}
