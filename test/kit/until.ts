import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

/** The longer the wait, the rarer the looks: they take processor time from the server that is waited for. */
const [SOONEST_MS, LATEST_MS] = [10, 100]

/** Waits until the condition holds. If it never does, the test fails and says `what` was missed. */
export async function until(
  condition: () => Promise<boolean> | boolean,
  what: string | (() => string),
  withinMs = 60_000,
): Promise<void> {
  const began = performance.now()
  while (!(await condition())) {
    const waited = performance.now() - began
    if (waited > withinMs) {
      const missed = typeof what === 'string' ? what : what()
      assert.fail(`within ${withinMs} ms it did not come true that ${missed}`)
    }
    await sleep(Math.min(Math.max(waited / 10, SOONEST_MS), LATEST_MS))
  }
}
