import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until the condition holds. If it never does, the test fails and says `what` was missed. */
export async function until(
  condition: () => Promise<boolean> | boolean,
  what: string | (() => string),
  withinMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await condition())) {
    if (performance.now() > deadline) {
      const missed = typeof what === 'string' ? what : what()
      assert.fail(`within ${withinMs} ms it did not come true that ${missed}`)
    }
    await sleep(20)
  }
}
