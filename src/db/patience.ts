import { isUnavailable } from './failures.ts'

const WAIT_MS = 200
/** The time that a start waits for a database that is slow to answer. */
export const START_PATIENCE_MS = 20_000

/** Retries for `forMs` while the database is away or has no connection to spare. */
export async function whileUnavailable<Result>(forMs: number, work: () => Promise<Result>): Promise<Result> {
  const giveUpAt = performance.now() + forMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isUnavailable(error) || performance.now() > giveUpAt) throw error
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
    }
  }
}
