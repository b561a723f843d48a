import { setTimeout as wait } from 'node:timers/promises'
import { isRetryable } from './failures.ts'

const ATTEMPTS = 5
/** Two transactions that collided would collide again if both began again at once, so each pauses for a random time. */
const LONGEST_PAUSE_MS = 50

/** Tries a transaction again after a serialisation failure or a deadlock. The database has undone the failed attempt. */
export async function retryCollisions<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      if (tries === ATTEMPTS || !isRetryable(error)) throw error
      await wait(Math.random() * LONGEST_PAUSE_MS * tries)
    }
  }
}
