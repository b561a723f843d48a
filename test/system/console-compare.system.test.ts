// Two runs side by side in a real browser.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Run } from '../../src/kernel/run.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, untilCount } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

const look = (q: string) => ({ say: 'I look around.', calls: [{ name: 'object_search', args: { q } }] })

describe('the comparison of two runs', { skip }, () => {
  test('Compare lists the origin first, and shows the steps aligned with their differences marked', async (t) => {
    const first = await kit.play({ tag: 'roses', steps: [look('rose'), { say: 'The roses are fine.' }] })
    const fork = await kit.api<Run>(`POST ${kit.path}/runs/${first.id}/fork`, { after_step: 1 })
    const { page, troubles } = await kit.open(t, `/runs/${fork.id}`)
    await page.getByRole('button', { name: 'Compare' }).click()
    const origin = page.getByRole('dialog', { name: 'Compare with' }).getByRole('link').first()
    await origin.waitFor()
    assert.equal(await origin.textContent(), 'The run that this one was forked from')
    await origin.click()
    await page.getByRole('heading', { name: 'Compare', level: 1 }).waitFor()
    assert.ok(page.url().endsWith(`/runs/${first.id}/compare/${fork.id}`), page.url())
    const steps = page.getByRole('list', { name: 'Aligned steps' })
    await steps.getByText('shared by both').waitFor()
    await page.getByText('All are the same.').waitFor()
    const other = await kit.play({ tag: 'dry', steps: [look('rose'), look('tulip'), { say: 'The roses are dry.' }] })
    await kit.goTo(page, `/runs/${first.id}/compare/${other.id}`)
    await steps.getByText('only in the second run').waitFor()
    await steps.getByText('differs in text').waitFor()
    await untilCount(steps.locator('del', { hasText: 'fine' }), 1)
    await untilCount(steps.locator('ins', { hasText: 'dry' }), 1)
    const figures = page.getByRole('table', { name: 'Figures' })
    await figures.getByRole('row', { name: /^Tokens .*\+/ }).waitFor()
    await page.getByLabel('Only differences').check({ force: true })
    assert.equal(await steps.getByText('the same', { exact: true }).count(), 0)
    await page.getByRole('button', { name: 'Swap sides' }).click()
    await page.waitForURL(`**/runs/${other.id}/compare/${first.id}`)
    await steps.getByText('only in the first run').waitFor()
    assert.deepEqual(troubles, [])
  })

  test('differences in arguments and results are named, and runs of the same agent are offered', async (t) => {
    const one = await kit.play({ tag: 'one', steps: [look('oak'), { say: 'Done.' }] })
    const other = await kit.play({ tag: 'other', steps: [look('elm'), { say: 'Done.' }] })
    const { page, troubles } = await kit.open(t, `/runs/${other.id}`)
    await page.getByRole('button', { name: 'Compare' }).click()
    await page
      .getByRole('dialog', { name: 'Compare with' })
      .getByRole('link', { name: /"tag":"one"/ })
      .click()
    const steps = page.getByRole('list', { name: 'Aligned steps' })
    await steps.getByText('differs in arguments').waitFor()
    await steps.getByText('the same', { exact: true }).waitFor()
    await untilCount(steps.locator('del', { hasText: 'oak' }), 1)
    assert.ok(page.url().includes(one.id))
    assert.deepEqual(troubles, [])
  })

  test('a run under way is compared as it goes on', async (t) => {
    kit.model.hold('compared')
    t.after(async () => kit.model.release('compared'))
    const done = await kit.play({ tag: 'done', steps: [{ say: 'All is watered.' }] })
    const { id } = await kit.trigger({ tag: 'under way', steps: [{ say: 'All is watered.', gate: 'compared' }] })
    const { page, troubles } = await kit.open(t, `/runs/${done.id}/compare/${id}`)
    await page.getByText('only in the first run').waitFor()
    kit.model.release('compared')
    await until(async () => (await kit.readRun(id)).status === 'completed', 'the run ends')
    await page.getByText('All are the same.').waitFor()
    assert.deepEqual(troubles, [])
  })

  test('an unknown run says so', async (t) => {
    const run = await kit.play({ tag: 'known', steps: [{ say: 'Look.' }] })
    const { page } = await kit.open(t, `/runs/${run.id}/compare/${kit.agent.id}`)
    await page.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
  })

  test('axe finds nothing on the comparison', async (t) => {
    const one = await kit.play({ tag: 'axe one', steps: [look('oak'), { say: 'Done.' }] })
    const other = await kit.play({ tag: 'axe two', steps: [look('elm'), look('ash'), { say: 'Done now.' }] })
    const { page } = await kit.open(t, '/runs')
    await kit.checkLooks(page, `/runs/${one.id}/compare/${other.id}`, () =>
      page.getByText('differs in').first().waitFor(),
    )
  })
})
