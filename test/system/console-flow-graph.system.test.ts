// The graph of a large flow run in a real browser: its groups say how their tasks stand, and every task can be reached.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, untilCount } from '../kit/browser.ts'
import { busyWhile } from '../kit/busy-while.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
const MOST_BUSY = 0.3
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

describe('the graph of a large flow run in a browser', { skip }, () => {
  test('sixty tasks are all in sight at first', async (t) => {
    const { page, troubles } = await openGraph(t, 60)
    await untilCount(page.locator('.react-flow__node [data-task]'), 62)
    await untilInSight(page, '[data-task="t_59"]')
    await page.getByRole('button', { name: 'Fold all groups' }).click()
    await untilCount(page.locator('.react-flow__node [data-task]'), 2)
    assert.deepEqual(troubles, [])
  })

  test('five hundred tasks are a group that says how they stand, opens, and is worked by keys', async (t) => {
    const { page, troubles } = await openGraph(t, 500)
    const group = page.getByRole('button', { name: /^Open 500 tasks t_0 … t_499 5 failed, 495 completed/ })
    await untilInSight(page, '[data-unit="plan"]')
    await page.locator('[data-unit="plan"]').focus()
    await page.keyboard.press('ArrowRight')
    await until(
      () => group.evaluate('document.activeElement?.dataset.unit === "beside t_0"'),
      'the group has the focus',
    )
    await page.keyboard.press('Enter')
    await untilCount(page.locator('.react-flow__node [data-task^="t_"]'), 500)
    const fold = page.getByRole('button', { name: /^Fold 500 tasks/ })
    await until(() => fold.evaluate('document.activeElement?.dataset.unit === "beside t_0"'), 'the frame has the focus')
    await page.keyboard.press('ArrowDown')
    await until(() => page.evaluate('document.activeElement?.dataset.task?.startsWith("t_")'), 'a task has the focus')
    await page.keyboard.press('Enter')
    await page.locator('.react-flow__node [data-task][aria-current="true"]').waitFor()
    await page.getByRole('button', { name: 'Fold all groups' }).click()
    await page.getByRole('button', { name: /^Open 500 tasks/, expanded: false }).waitFor()
    await page.getByRole('button', { name: 'Open all groups' }).click()
    await untilCount(page.locator('.react-flow__node [data-task^="t_"]'), 500)
    assert.deepEqual(troubles, [])
  })

  test('the chosen one of five thousand tasks is in sight, and each part of its group opens', async (t) => {
    const { page, run, troubles } = await openGraph(t, 5_000)
    await page.getByRole('button', { name: /^Open 5000 tasks/ }).click()
    await untilCount(page.getByRole('button', { name: /^Open 100 tasks/ }), 50)
    await kit.goTo(page, `/flows/${run.id}?view=graph&task=t_4321`)
    await page.locator('.react-flow__node [data-task="t_4321"][aria-current="true"]').waitFor()
    await untilInSight(page, '.react-flow__node [data-task="t_4321"]')
    const aside = page.getByRole('complementary', { name: 'Details' })
    await aside.getByRole('button', { name: 'report' }).click()
    await untilInSight(page, '.react-flow__node [data-task="report"]')
    assert.deepEqual(troubles, [])
  })

  test('the graph of 500 tasks at 20 events a second leaves the main thread mostly idle, folded and open', async (t) => {
    const gates = Array.from({ length: 500 }, (_, place) => `graph ${place}`)
    for (const gate of gates) kit.model.hold(gate)
    t.after(async () => {
      for (const gate of gates) kit.model.release(gate)
    })
    const branches = gates.map((gate, place) => ({
      type: 'task',
      id: `g_${place}`,
      agent: 'Gardener',
      input: { tag: gate, steps: [{ say: 'Done it.', gate }] },
    }))
    const body = { root: { type: 'parallel', branches }, workers: 12 }
    const run = await kit.api<FlowRun>(`POST ${kit.path}/flow-runs`, body)
    const { page, troubles } = await kit.open(t, `/flows/${run.id}?view=graph`)
    const waiting = gates.values()
    for (const state of ['folded', 'open']) {
      if (state === 'open') await page.getByRole('button', { name: 'Open all groups' }).click()
      else await page.getByRole('button', { name: /^Open 500 tasks/ }).waitFor()
      await delay(1_000)
      const busy = await busyWhile(page, async () => {
        for (const gate of waiting.take(80)) {
          await until(async () => kit.model.held(gate) === 1, 'the task waits for the model')
          kit.model.release(gate)
          await delay(100)
        }
      })
      t.diagnostic(`${state}: the main thread is ${Math.round(100 * busy)} % busy`)
      assert.ok(busy < 2 * MOST_BUSY, `${state}: the main thread is ${Math.round(100 * busy)} % busy`)
    }
    assert.deepEqual(troubles, [])
  })

  test('axe finds nothing in the graph, folded and open, dark and light, on a desktop and on a phone', async (t) => {
    const { page, run, troubles } = await openGraph(t, 100)
    for (const task of ['', '&task=t_96']) {
      await kit.checkLooks(page, `/flows/${run.id}?view=graph${task}`, async () => {
        await page.locator('.react-flow__node').first().waitFor()
        assert.equal(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth'), 0)
      })
    }
    assert.deepEqual(troubles, [])
  })
})

/** A plan, then many tasks beside each other of which each 97th fails, then a report. */
async function openGraph(t: Parameters<ConsoleKit['open']>[0], count: number) {
  const branches = Array.from({ length: count }, (_, place) => ({
    type: 'task',
    id: `t_${place}`,
    ...(place % 97 === 96 ? { function: 'muster.chunk', args: {} } : { function: 'muster.identity', args: place }),
  }))
  const step = (id: string) => ({ type: 'task', id, function: 'muster.identity', args: id })
  const steps = [step('plan'), { type: 'parallel', branches }, step('report')]
  const { id } = await kit.api<FlowRun>(`POST ${kit.path}/flow-runs`, { root: { type: 'sequential', steps } })
  const read = () => kit.api<FlowRun>(`GET ${kit.path}/flow-runs/${id}`)
  await until(async () => (await read()).completed_at !== null, 'the flow run has ended', 90_000)
  return { ...(await kit.open(t, `/flows/${id}?view=graph`)), run: await read() }
}

/** Waits until the box lies within the graph, and not beyond one of its edges. */
const untilInSight = (page: Page, box: string): Promise<void> =>
  until(
    () =>
      page.evaluate<boolean>(
        `{
          const box = document.querySelector('${box}')?.getBoundingClientRect()
          const graph = document.querySelector('.react-flow')?.getBoundingClientRect()
          Boolean(box && graph) && box.left >= graph.left && box.right <= graph.right && box.top >= graph.top && box.bottom <= graph.bottom
        }`,
      ),
    `${box} is in sight`,
  )
