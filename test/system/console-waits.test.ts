// A provider that is away, in a real browser: the run is seen as waiting, everywhere, and Try now lets it try at once.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Agent } from '../../src/kernel/agent.ts'
import type { Run } from '../../src/kernel/run.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser } from '../kit/browser.ts'
import { CLOSED, type ClosableProvider, startClosableProvider } from '../kit/closable-provider.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit
let provider: ClosableProvider
let cook: Agent

before(async () => {
  if (skip) return
  kit = await startConsole({ after: atEnd })
  provider = await startClosableProvider({ after: atEnd }, kit.model.url)
  await kit.api('POST /api/providers', { name: 'kitchen', kind: 'openai-compatible', base_url: provider.url })
  cook = await kit.api<Agent>(`POST ${kit.path}/agents`, { name: 'Cook', model: { provider: 'kitchen', name: 'any' } })
})

async function startWaiting(tag: string): Promise<Run> {
  provider.close()
  const { id } = await kit.trigger({ tag, steps: [{ say: 'Served.' }] }, {}, cook)
  await until(async () => (await kit.readRun(id)).waiting_for === 'provider kitchen', 'the run waits')
  return kit.readRun(id)
}

describe('a run that waits for its provider, in a browser', { skip }, () => {
  test('says so with the words of the provider and the next try, and Try now lets it try at once', async (t) => {
    const run = await startWaiting('now')
    const { page, troubles } = await kit.open(t, `/runs/${run.id}`)
    const verdict = page.getByRole('status').filter({ hasText: 'Cook waits for the provider kitchen' })
    await verdict.getByText(CLOSED.replace('.', '')).waitFor()
    await verdict.getByText(/Next try in (\d+ s|1m \d+s) \(\d\d:\d\d:\d\d\)\./).waitFor()
    await page.getByText('waiting', { exact: true }).waitFor()
    assert.equal(await page.getByText('failed', { exact: true }).count(), 0)
    await kit.checkLooks(page, `/runs/${run.id}`, () => page.getByRole('button', { name: 'Try now' }).waitFor())
    await picture(page, 'waits')
    provider.open()
    await page.getByRole('button', { name: 'Try now' }).click()
    await page.getByText(/^Cook finished in/).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('is listed as waiting on Home and among the runs, and not as failed', async (t) => {
    const run = await startWaiting('home')
    const { page, troubles } = await kit.open(t, '/runs')
    await page.getByRole('row').filter({ hasText: 'Cook' }).first().getByText('waiting', { exact: true }).waitFor()
    await page.goto(kit.muster.url)
    const list = page.getByRole('region', { name: 'Waiting for a provider' })
    const row = list.getByRole('link', { name: /Cook/ })
    await row.getByText(/waits for provider kitchen/).waitFor()
    await row.getByText(/Next try in/).waitFor()
    await page.getByText('Nothing failed in the last day.').waitFor()
    await picture(page, 'home')
    await row.click()
    await page.waitForURL((url) => url.pathname.endsWith(run.id))
    assert.deepEqual(troubles, [])
  })

  test('a leaf that waits says so on the page of its flow run', async (t) => {
    provider.close()
    const root = { type: 'task', id: 'meal', agent: 'Cook', input: { tag: 'leaf', steps: [{ say: 'Served.' }] } }
    const { id } = await kit.api<{ id: string }>(`POST ${kit.path}/flow-runs`, { root })
    const { page, troubles } = await kit.open(t, `/flows/${id}?task=meal`)
    const aside = page.getByRole('complementary', { name: 'Details' })
    await aside.getByText(/Cook waits for the provider kitchen/).waitFor()
    await aside.getByText(/Next try in/).waitFor()
    await aside.getByRole('button', { name: 'Try now' }).waitFor()
    const wait = page.getByRole('region', { name: 'Wait' })
    await wait.getByText(/^Waiting for provider kitchen, which answered 503.*Next try in \d+ s/).waitFor()
    await wait.getByRole('button', { name: 'Try now' }).waitFor()
    await kit.checkLooks(page, `/flows/${id}`, () => wait.getByText(/Waiting for provider kitchen/).waitFor())
    await picture(page, 'leaf-waits')
    await kit.goTo(page, '/flows')
    const listed = page.locator(`[data-run="${id}"]`)
    await listed.getByText('waiting', { exact: true }).waitFor()
    await listed.getByText('0 of 1, 1 waiting').waitFor()
    await page.goto(kit.muster.url)
    const row = page.getByRole('region', { name: 'Waiting for a provider' }).getByRole('link', { name: /task/ })
    await row.getByText(/waits for provider kitchen/).waitFor()
    await row.getByText(/Next try in/).waitFor()
    assert.equal(await page.getByRole('region', { name: 'Runs now' }).getByRole('link').count(), 0)
    assert.deepEqual(troubles, [])
  })
})

/** MUSTER_TEST_LOOKS names a folder for pictures that a person looks at. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.MUSTER_TEST_LOOKS
  if (folder) await page.screenshot({ path: `${folder}/ui-${name}.png` })
}
