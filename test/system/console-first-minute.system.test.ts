// The first minute with Muster, as a newcomer has it: an empty data folder, the link that the start prints, and a demo
// at work. Its pictures are a film (MUSTER_TEST_FILM names the folder), and those of the README (MUSTER_TEST_PICTURES).
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { noBrowser, openPage, startBrowser, type Watched } from '../kit/browser.ts'
import { freePort } from '../kit/free-port.ts'
import { type Cleanup, makeFolder, startMuster } from '../kit/process.ts'

const ALIVE_WITHIN_MS = 10_000
const LIVE_AGAIN_WITHIN_MS = 5_000
const PICTURES = process.env.MUSTER_TEST_PICTURES
const LARGEST_PICTURE = 200_000
const FLOW = 'Product launch'

/** On a machine with much other work the figures say nothing about Muster. */
const patience = (ms: number): number => ((loadavg()[0] ?? 0) > availableParallelism() ? 4 * ms : ms)

const region = (page: Page, name: string): Locator => page.getByRole('region', { name, exact: true })

/** The rows of Home that a newcomer sees. */
const rows = (page: Page) => ({
  flow: region(page, 'Runs now').getByRole('link', { name: new RegExp(`^${FLOW} running.* done.*ETA `) }),
  loop: region(page, 'Failed or stopped in the last day').getByRole('link', { name: /^Stock watcher failed/ }),
  budget: region(page, 'Waits for you').getByRole('link', { name: /^Bookkeeper has used 9\d % of its tokens/ }),
  suggestion: region(page, 'Waits for you').getByRole('link', { name: /suggestion/ }),
  question: region(page, 'Waits for you').getByRole('link', { name: /question/ }),
})

/** Takes a picture each second until the end of the test. */
async function startFilm(t: Cleanup, page: Page): Promise<string> {
  const named = process.env.MUSTER_TEST_FILM
  const folder = named ?? (await mkdtemp(join(tmpdir(), 'muster-film-')))
  await mkdir(folder, { recursive: true })
  let number = 0
  let taking: Promise<unknown> = Promise.resolve()
  const timer = setInterval(() => {
    const path = join(folder, `${String(++number).padStart(3, '0')}.png`)
    taking = taking.then(() => page.screenshot({ path })).catch(() => {})
  }, 1_000)
  t.after(async () => {
    clearInterval(timer)
    await taking
    if (named === undefined) await rm(folder, { recursive: true, force: true })
  })
  return folder
}

/** Opens the link of the start. */
async function signIn(t: Cleanup, link: string): Promise<Watched> {
  const watched = await openPage(await startBrowser(t), { origin: new URL(link).origin })
  t.after(() => watched.context.close())
  return watched
}

async function goHome(page: Page): Promise<void> {
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Home' }).click()
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
}

/** A picture of the README, dark and light, if pictures are wanted. */
async function takePicture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return
  await mkdir(PICTURES, { recursive: true })
  for (const [colorScheme, file] of [
    ['dark', `${name}.png`],
    ['light', `${name}-light.png`],
  ] as const) {
    await page.emulateMedia({ colorScheme })
    await page.waitForTimeout(300)
    const picture = await page.screenshot()
    assert.ok(picture.length < LARGEST_PICTURE, `${file} has ${picture.length} bytes`)
    await writeFile(join(PICTURES, file), picture)
  }
  await page.emulateMedia({ colorScheme: 'dark' })
}

describe('the first minute', { skip: noBrowser }, () => {
  test('within ten seconds of the sign-in link Home shows the demo at work, and each thing leads to its page', async (t) => {
    const muster = await startMuster(t)
    const { page, troubles } = await signIn(t, muster.signInLink())
    const began = performance.now()
    await page.goto(muster.signInLink())
    await startFilm(t, page)
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
    const shown = rows(page)
    for (const row of Object.values(shown)) await row.first().waitFor()
    const tookMs = Math.round(performance.now() - began)
    t.diagnostic(`Home showed everything ${tookMs} ms after the link was opened`)
    assert.ok(tookMs < patience(ALIVE_WITHIN_MS), `it took ${tookMs} ms`)
    await takePicture(page, 'home')

    await shown.flow.first().click()
    await page.getByRole('heading', { name: FLOW, level: 1 }).waitFor()
    await page.getByRole('list', { name: "Queen's plan" }).getByRole('listitem').first().waitFor()
    await page.getByText('ETA', { exact: true }).first().waitFor()
    await page.locator('[data-task][data-status="running"]').first().waitFor()
    await takePicture(page, 'flow')

    await goHome(page)
    await shown.loop.first().click()
    await page.getByRole('heading', { name: 'Stock watcher', level: 1 }).waitFor()
    await page
      .getByText(/the same call again and again/)
      .first()
      .waitFor()
    await takePicture(page, 'run')

    await goHome(page)
    await shown.budget.first().click()
    await page.getByRole('heading', { name: 'Bookkeeper', level: 1 }).waitFor()
    await page.getByText('The tokens run short.').waitFor()

    await goHome(page)
    await shown.question.first().click()
    await page.waitForURL(/\/inbox\?item=/)
    await page.getByRole('button', { name: 'Answer' }).first().waitFor()

    await goHome(page)
    await shown.suggestion.first().click()
    await page.waitForURL(/\/inbox\?item=/)
    await page.getByRole('button', { name: 'Approve', exact: true }).first().waitFor()
    await page.getByText('"triaged"').first().waitFor()
    await takePicture(page, 'inbox')
    assert.deepEqual(troubles, [])
  })

  test('the flow page goes on where it was after kill -9 and another start, without a reload', async (t) => {
    const options = { dataDir: join(await makeFolder(t), 'data'), port: await freePort() }
    const first = await startMuster(t, options)
    const { page, troubles } = await signIn(t, first.signInLink())
    await page.goto(first.signInLink())
    await rows(page).flow.first().click()
    await page.getByText('Live', { exact: true }).waitFor()
    const tasks = (status: string): Locator => page.locator(`[data-task][data-status="${status}"]`)
    await tasks('completed').nth(1).waitFor()
    const done = await idsOf(tasks('completed'))
    await page.evaluate('window.isSamePage = true')
    await first.kill('SIGKILL')
    await page.getByText('Reconnecting').waitFor()
    await startMuster(t, options)
    const ready = performance.now()
    await page.getByText('Live', { exact: true }).waitFor()
    const tookMs = Math.round(performance.now() - ready)
    t.diagnostic(`the page was live ${tookMs} ms after the server was ready`)
    assert.ok(tookMs < patience(LIVE_AGAIN_WITHIN_MS), `it took ${tookMs} ms`)
    const after = await idsOf(tasks('completed'))
    assert.deepEqual(
      done.filter((id) => !after.includes(id)),
      [],
      'completed tasks stay completed',
    )
    await page.getByText('The flow run is completed.').waitFor({ timeout: patience(120_000) })
    assert.equal(await page.evaluate('window.isSamePage'), true)
    assert.deepEqual(troubles, [])
  })
})

const idsOf = (tasks: Locator): Promise<string[]> =>
  tasks.evaluateAll(
    // Runs in the page, where elements are.
    (found: { getAttribute(name: string): string | null }[]) =>
      found.map((each) => each.getAttribute('data-task') ?? ''),
  )
