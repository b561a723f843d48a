import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'

/** The share of the time in which the main thread works, by its own clock: other processes do not count. */
export async function busyWhile(page: Page, work: () => Promise<void>): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const worked = async (): Promise<number> => {
    const { metrics } = await session.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? assert.fail('no metric')
  }
  const [before, from] = [await worked(), performance.now()]
  await work()
  const share = (1_000 * ((await worked()) - before)) / (performance.now() - from)
  await session.detach()
  return share
}
