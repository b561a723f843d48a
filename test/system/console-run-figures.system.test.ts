// The figures of a run in a browser: its waits in the waterfall, its model, and the reason why it has no cost.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Agent } from '../../src/kernel/agent.ts'
import type { Run } from '../../src/kernel/run.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit
let asker: Agent

before(async () => {
  if (skip) return
  kit = await startConsole({ after: atEnd })
  asker = await kit.api<Agent>(`POST ${kit.path}/agents`, {
    name: 'Asker',
    prompt: 'Ask.',
    model: { provider: 'planned', name: 'any' },
    tools: ['ask_human'],
  })
})

async function ask(question: string): Promise<Run> {
  const steps = [{ say: 'I ask.', calls: [{ name: 'ask_human', args: { question } }] }, { say: 'The roses then.' }]
  const { id } = await kit.trigger({ tag: question, steps }, {}, asker)
  await until(async () => (await kit.readRun(id)).status === 'paused', 'the run asks')
  return kit.readRun(id)
}

describe('the figures of a run in a browser', { skip }, () => {
  test('a wait for a person is a bar that grows, and keeps its duration', async (t) => {
    const { id } = await ask('Which bed?')
    const { page, troubles } = await kit.open(t, `/runs/${id}`)
    const bar = page.getByRole('list', { name: 'Waterfall' }).getByRole('listitem').filter({ hasText: 'Wait: person' })
    await bar.waitFor()
    const first = await bar.textContent()
    await until(async () => (await bar.textContent()) !== first, 'the wait grows')
    await page.getByRole('list', { name: 'Colours' }).getByText('Waiting').waitFor()
    await page.getByLabel('Which bed?').fill('The roses')
    await page.getByRole('button', { name: 'Answer' }).click()
    await page.getByText(/^Asker finished in/).waitFor()
    await page.getByRole('list', { name: 'Waterfall' }).getByText('Step 2').waitFor()
    assert.doesNotMatch((await bar.textContent()) ?? '', /\b0 ms/)
    assert.equal(await page.getByRole('list', { name: 'Waterfall' }).getByText('ask_human').count(), 0)
    assert.deepEqual(troubles, [])
  })

  test('an unknown cost gives its reason, and leads the instance admin to the prices', async (t) => {
    const { id } = await kit.play({ tag: 'cost', steps: [{ say: 'Done.' }] })
    const { page, troubles } = await kit.open(t, `/runs/${id}`)
    const figures = page.getByRole('complementary', { name: 'Figures' })
    await figures.getByText('any planned').waitFor()
    const reason = /the model any of planned has no price\. An admin sets prices under Settings → Providers\./
    const link = figures.getByRole('link', { name: reason })
    await link.focus()
    await page.getByRole('tooltip').getByText(reason).waitFor()
    await link.click()
    await page.waitForURL('**/settings/providers')
    const viewer = await kit.invite('viewer')
    const { page: theirs } = await kit.open(t, `/runs/${id}`, viewer)
    await theirs.getByText(reason).waitFor({ state: 'attached' })
    assert.equal(await theirs.getByRole('link', { name: reason }).count(), 0)
    await kit.goTo(theirs, '/runs')
    await theirs.getByRole('cell', { name: reason }).first().waitFor()
    assert.deepEqual(troubles, [])
  })

  test('two runs of different models are told apart', async (t) => {
    const one = await kit.play({ tag: 'model', steps: [{ say: 'Done.' }] })
    const offline = await kit.api<Agent>(`POST ${kit.path}/agents`, { name: 'Offline', prompt: 'Answer.' })
    const other = await kit.api<Run>(`POST ${kit.path}/agents/${offline.id}/trigger`, { input: 'Hello' })
    const { page, troubles } = await kit.open(t, `/runs/${one.id}/compare/${other.id}`)
    const row = page.getByRole('row', { name: /^Model/ })
    await row.getByText('any of planned').waitFor()
    await row.getByText('offline of offline').waitFor()
    assert.deepEqual(troubles, [])
  })

  test('the run that waits is fit for everybody, in dark and light, on a desktop and a phone', async (t) => {
    const { id } = await ask('Which tree?')
    const { page } = await kit.open(t, `/runs/${id}`)
    await kit.checkLooks(page, `/runs/${id}`, (shown) => shown.getByText('Wait: person').waitFor())
  })
})
