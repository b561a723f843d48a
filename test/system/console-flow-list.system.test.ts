// The list of flow runs in a real browser: its words for a halted project, and its columns in windows of any width.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'

const skip = noBrowser
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

describe('the list of flow runs in a browser', { skip }, () => {
  test('a flow run of a halted project is halted there and has no ETA, until the halt is lifted', async (t) => {
    kit.model.hold('halted')
    t.after(async () => kit.model.release('halted'))
    const run = await startHeld('halted')
    const { page, troubles } = await kit.open(t, '/flows')
    const row = page.locator(`[data-run="${run.id}"]`)
    await row.getByText('running').first().waitFor()
    await row.getByText('not known yet').waitFor()
    await kit.api(`POST ${kit.path}/halt`, {})
    await page.reload()
    await row.getByText('halted', { exact: true }).waitFor()
    assert.equal(await row.getByText(/not known yet|any moment/).count(), 0)
    await page.getByRole('button', { name: 'Unhalt project' }).click()
    await row.getByText('not known yet').waitFor()
    assert.equal(await row.getByText('halted', { exact: true }).count(), 0)
    assert.deepEqual(troubles, [])
  })

  test('every column can be read at 1280 pixels, and the page scrolls sideways at no width', async (t) => {
    kit.model.hold('wide')
    t.after(async () => kit.model.release('wide'))
    const { id } = await startHeld('wide')
    const { page, troubles } = await kit.open(t, '/')
    // The longest words that each column can have.
    const long = {
      created_at: new Date(Date.now() - 59 * 60_000).toISOString(),
      started_at: new Date(Date.now() - 59 * 60_000).toISOString(),
      eta: null,
      duration: 23.9 * 3_600_000,
      input: { question: 'which of the many beds of this very large garden is to be watered first? '.repeat(3) },
      progress: { total: 5_000, pending: 1_000, running: 300, completed: 2_500, failed: 1_200, skipped: 0 },
    }
    await rewrite(page, (run) =>
      run.id === id ? { ...run, ...long, usage: { ...run.usage, cost_usd: 0.00042 } } : run,
    )
    for (const width of [1_280, 768, 390]) {
      await page.setViewportSize({ width, height: 800 })
      await kit.goTo(page, '/flows')
      const row = page.locator(`[data-run="${id}"]`)
      await row.getByText('$0.00042').waitFor()
      await row.getByText('2500 of 5000, 300 running, 1200 failed').waitFor()
      assert.equal(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth'), 0, `${width}`)
      assert.deepEqual(await cutCells(page), [], `cut at ${width}`)
      const hidden = await page.evaluate<number>(
        `{ const box = document.querySelector('[aria-label="Flow runs, wide"]'); box.scrollWidth - box.clientWidth }`,
      )
      assert.equal(hidden > 0, width < 1_280, `${hidden} pixels of the table are out of sight at ${width}`)
    }
    assert.deepEqual(troubles, [])
  })
})

const startHeld = (gate: string): Promise<FlowRun> => {
  const steps = [{ type: 'task', id: gate, agent: 'Gardener', input: { tag: gate, steps: [{ say: 'Done.', gate }] } }]
  return kit.api<FlowRun>(`POST ${kit.path}/flow-runs`, { root: { type: 'sequential', steps } })
}

/** Lets the page read other flow runs than the server has. */
const rewrite = (page: Page, change: (run: FlowRun) => FlowRun): Promise<unknown> =>
  page.route(/\/flow-runs\?/, async (route) => {
    const response = await route.fetch()
    const list = (await response.json()) as { items: FlowRun[] } // as the API says
    await route.fulfill({ response, json: { ...list, items: list.items.map(change) } })
  })

/** The cells whose words are wider than the cell. Only the words of the flow itself, which are any text, may be cut. */
const cutCells = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>(
    `[...document.querySelectorAll('th, td')]
      .filter((cell) => cell.cellIndex !== 1)
      .filter((cell) => [cell, ...cell.querySelectorAll('*')].some((box) => box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0))
      .map((cell) => cell.textContent)`,
  )
