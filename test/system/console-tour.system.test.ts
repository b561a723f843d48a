// The tour of the demo, in a real browser against a server whose demo is at work.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import type { Agent } from '../../src/kernel/agent.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import type { Run } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
const WITH_DEMO = { MUSTER_DEMO: 'on' }
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd }, WITH_DEMO)
})

const main = (page: Page): Locator => page.getByRole('navigation', { name: 'Main' })
const card = (page: Page): Locator => page.getByRole('dialog', { name: 'Tour' })
const offer = (page: Page): Locator => page.getByRole('region', { name: 'First steps' })

/** The name of the element that has the focus. */
const focused = (page: Page): Promise<string> =>
  page.evaluate<string>('document.activeElement.ariaLabel ?? document.activeElement.textContent')

async function press(page: Page, name: string): Promise<void> {
  const menu = main(page).getByRole('button', { name: 'Menu' })
  const entry = main(page).getByRole(name === 'Home' ? 'link' : 'button', { name, exact: true })
  await menu.or(entry).first().waitFor()
  if (await menu.isVisible()) await menu.click()
  await entry.click()
}

async function goHome(page: Page): Promise<void> {
  await press(page, 'Home')
  await page.getByRole('region', { name: 'Projects' }).getByText('Demo').waitFor()
}

/** The stop that the card shows, with its place outlined on the right page. */
async function isAt(page: Page, title: string, address: RegExp, place: string): Promise<void> {
  await card(page).getByRole('heading', { name: title, level: 2 }).waitFor()
  await page.waitForURL(address)
  await page.locator(place).waitFor()
  const outline = `getComputedStyle(document.querySelector(${JSON.stringify(place)})).outlineStyle`
  assert.equal(await page.evaluate(outline), 'solid', title)
  assert.equal(await card(page).getByRole('link', { name: 'Show it' }).count(), 0, title)
}

/** How many pixels in height the card and the place share, where they share columns. */
async function overlap(page: Page, place: string): Promise<number> {
  const one = (await card(page).boundingBox()) ?? assert.fail('the card is not shown')
  const other = (await page.locator(place).boundingBox()) ?? assert.fail(`${place} is not shown`)
  const share = (from: number, size: number, start: number, length: number): number =>
    Math.max(0, Math.min(from + size, start + length) - Math.max(from, start))
  return share(one.x, one.width, other.x, other.width) > 0 ? share(one.y, one.height, other.y, other.height) : 0
}

/** The id of the demo project, once all that the tour shows is there. */
async function demoAtWork(): Promise<string> {
  const { items } = await kit.api<{ items: { id: string; name: string }[] }>('GET /api/projects')
  const demo = items.find(({ name }) => name === 'Demo')?.id ?? assert.fail('there is no demo')
  const list = async <Item>(path: string): Promise<Item[]> =>
    (await kit.api<{ items: Item[] }>(`GET /api/projects/${demo}${path}`)).items
  const isThere = async (): Promise<boolean> => {
    const [flows, runs, agents, tasks] = await Promise.all([
      list<FlowRun>('/flow-runs'),
      list<Run>('/runs?status=failed'),
      list<Agent>('/agents?limit=100'),
      list<Task>('/tasks?status=pending&limit=100'),
    ])
    const waiting = tasks.filter(({ assigned_to }) => assigned_to === null).map(({ kind }) => kind)
    return (
      flows.some(
        ({ pattern, status, progress }) => pattern === 'hierarchical' && status === 'running' && progress.total > 3,
      ) &&
      runs.some(({ error_code }) => error_code === 'DOOM_LOOP') &&
      agents.some(({ name, token_used }) => name === 'Bookkeeper' && token_used > 0) &&
      waiting.includes('suggestion') &&
      waiting.includes('escalation')
    )
  }
  await until(isThere, 'the demo shows all that the tour tells of', 90_000)
  return demo
}

describe('the tour in a browser', { skip }, () => {
  test('the tour offers itself once, and is walked by keyboard to everything that the demo shows', async (t) => {
    const demo = await demoAtWork()
    const { page, troubles } = await kit.open(t, '/runs')
    await goHome(page)
    await offer(page).getByRole('button', { name: 'Show me around' }).press('Enter')
    const at = (place: string): RegExp => new RegExp(`/projects/${demo}${place}`)
    const walk = async (key: string, ...stop: [string, RegExp, string]): Promise<void> => {
      assert.equal(await focused(page), 'Next')
      await page.keyboard.press(key)
      await isAt(page, ...stop)
    }
    await isAt(page, 'Home', /\/$/, 'section[aria-label="Waits for you"]')
    assert.equal(await offer(page).count(), 0)
    assert.equal(await focused(page), 'Next')
    const read = Promise.withResolvers<void>()
    await page.route(/\/flow-runs\?/, (route) => read.promise.then(() => route.continue()))
    await page.reload()
    await press(page, 'Tour')
    await isAt(page, 'Home', /\/$/, 'section[aria-label="Waits for you"]')
    assert.equal(await focused(page), 'Next')
    await page.keyboard.press('Enter')
    await card(page).getByRole('heading', { name: 'A flow at work' }).waitFor()
    read.resolve() // a flow that is read late is still led to
    await isAt(page, 'A flow at work', at('/flows/[0-9a-f-]{36}'), '[data-tour="figures"]')
    await page.locator('[data-tour="figures"]').getByText('ETA').waitFor()
    await walk('Enter', "The queen's plan", at('/flows/'), '[aria-label="Queen\'s plan"]')
    await walk('ArrowRight', 'A loop that was stopped', at('/runs/'), '[data-tour="verdict"]')
    await walk('Enter', 'A budget that runs out', at('/organisation\\?agent='), '[data-tour="budget"]')
    await card(page).getByText('Bookkeeper has used most of its tokens').waitFor()
    await walk('Enter', 'A suggestion to decide', at('/inbox\\?item='), '[id^="item-"][data-current]')
    await page.locator('[data-current]').getByRole('button', { name: 'Approve' }).waitFor()
    await walk('Enter', 'A question to answer', at('/inbox\\?item='), '[id^="item-"][data-current]')
    await page.locator('[data-current]').getByRole('button', { name: 'Answer' }).waitFor()
    await page.keyboard.press('ArrowLeft')
    await isAt(page, 'A suggestion to decide', at('/inbox\\?item='), '[id^="item-"][data-current]')
    await page.keyboard.press('Enter')
    await walk('Enter', 'Your turn', at('/playground'), '[data-tour="message"]')
    await card(page).getByText('Give the supervisor a task here').waitFor()
    for (const width of [390, 768, 1_280]) {
      await page.setViewportSize({ width, height: 800 })
      await page.getByRole('textbox', { name: 'Message' }).fill(`Typed at ${width}`)
      assert.equal(await overlap(page, '[data-tour="message"]'), 0, `the card covers the message box at ${width}`)
      for (const name of ['New chat', 'Send']) {
        await page.getByRole('button', { name, exact: true }).click({ trial: true })
      }
    }
    await card(page).getByRole('link', { name: 'Add a key' }).click()
    await page.waitForURL(at('/settings/providers'))
    await card(page).getByRole('link', { name: 'Show it' }).click()
    await page.waitForURL(at('/playground'))
    await card(page).getByRole('button', { name: 'Done' }).press('Enter')
    await card(page).waitFor({ state: 'detached' })
    assert.equal(await focused(page), 'Tour', 'the button of the offer is gone, so this one has the focus')
    await kit.goTo(page, '/runs')
    await goHome(page)
    assert.equal(await offer(page).count(), 0, 'it offers itself once')
    assert.deepEqual(troubles, [])
  })

  test('a project without the demo has a tour of its areas, on a phone too, and axe finds nothing', async (t) => {
    const { page, troubles } = await kit.open(t, '/agents')
    await page.emulateMedia({ reducedMotion: 'reduce' })
    await kit.checkLooks(page, '/agents', async () => {
      await press(page, 'Tour')
      await isAt(page, 'Home', /\/$/, 'section[aria-label="Waits for you"]')
      await page.keyboard.press('Enter')
      await isAt(page, 'A flow at work', new RegExp(`/projects/${kit.project}/flows$`), 'main h1')
      await card(page).getByText('its progress and its ETA move here').waitFor()
      assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth')) <= 0)
    })
    await page.keyboard.press('Escape')
    await card(page).waitFor({ state: 'detached' })
    assert.equal(await focused(page), 'Menu', 'the button Tour is in the closed menu')
    assert.deepEqual(troubles, [])
  })

  test('Not now is remembered, and the page stays in use beside the tour', async (t) => {
    const { page, troubles } = await kit.open(t, '/agents')
    await goHome(page)
    await kit.checkLooks(page, '/agents', async () => {
      await goHome(page)
      await offer(page).waitFor()
    })
    await page.setViewportSize({ width: 1_280, height: 800 })
    await offer(page).getByRole('button', { name: 'Not now' }).click()
    await offer(page).waitFor({ state: 'detached' })
    await kit.goTo(page, '/agents')
    await goHome(page)
    assert.equal(await offer(page).count(), 0)
    await press(page, 'Tour')
    await card(page).waitFor()
    await page.getByRole('button', { name: 'New project' }).click()
    const dialog = page.getByRole('dialog', { name: 'New project' })
    await dialog.getByLabel('Name').fill('Meadow')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await card(page).getByRole('button', { name: 'Next' }).focus()
    await page.keyboard.press('Escape')
    await card(page).waitFor({ state: 'detached' })
    assert.equal(await focused(page), 'Tour')
    assert.deepEqual(troubles, [])
  })
})
