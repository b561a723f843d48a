import { pruneIdempotencyKeys } from '../api/idempotency.ts'
import type { Pool } from '../db/pool.ts'
import { pruneIdentity } from '../identity/prune.ts'
import type { Log } from '../kernel/log.ts'

const EVERY_MS = 10 * 60_000

/** Removes what has lapsed: at the start and every ten minutes. Several processes may do it at once. */
export function startHousekeeping(pool: Pool, log: Log): { stop(): Promise<void> } {
  let running: Promise<void> = Promise.resolve()
  const tidy = (): void => {
    running = Promise.all([pruneIdentity(pool), pruneIdempotencyKeys(pool)]).then(
      () => {},
      (error: unknown) => log.warn({ err: error }, 'housekeeping will be tried again'),
    )
  }
  tidy()
  const timer = setInterval(tidy, EVERY_MS)
  return {
    stop: async () => {
      clearInterval(timer)
      await running
    },
  }
}
