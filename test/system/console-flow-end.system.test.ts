// The page of a flow run that has ended, in a real browser: why it did not end well, and how it is run again.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Agent } from '../../src/kernel/agent.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit
let hasty: Agent

before(async () => {
  if (skip) return
  kit = await startConsole({ after: atEnd })
  hasty = await kit.api<Agent>(`POST ${kit.path}/agents`, {
    name: 'Hasty',
    prompt: 'Work.',
    model: { provider: 'planned', name: 'any' },
    tools: ['object_search'],
    max_steps: 2,
  })
})

describe('a flow run that has ended, in a browser', { skip }, () => {
  test('a leaf that reached its step limit is explained, with its run, its limit and the way to run it again', async (t) => {
    const look = { say: 'I look.', calls: [{ name: 'object_search', args: { type: 'bed' } }] }
    const branches = [
      { type: 'task', id: 'survey', agent: 'Hasty', input: { tag: 'survey', steps: [look, look, look, look] } },
      { type: 'task', id: 'fine', function: 'muster.identity', args: { beds: 3, note: 'Three *good* beds.' } },
    ]
    const run = await play({ root: { type: 'parallel', branches }, input: { garden: 'north' }, workers: 4 })
    assert.equal(run.status, 'partial')
    assert.match(run.error ?? '', /paused \(step_limit\)/)
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    const reason = page.getByRole('region', { name: 'Reason' })
    await reason.getByText('Hasty used all 2 steps that it may take, and was not done.').waitFor()
    await reason.getByText(/Raise the limit first\. Resume continues it: 1 finished task is kept\./).waitFor()
    assert.equal(await page.getByText(/is paused \(/).count(), 0)
    const edit = reason.getByRole('link', { name: 'Change the step limit of Hasty' })
    assert.ok((await edit.getAttribute('href'))?.endsWith(`/agents/${hasty.id}/edit?field=max_steps`))
    await edit.click()
    const inUse = (): Promise<unknown> => page.evaluate('document.activeElement?.dataset.path')
    await until(async () => (await inUse()) === 'max_steps', 'the field of the step limit has the focus')
    await page.goBack()
    assert.match(
      (await reason.getByRole('link', { name: 'Open its run' }).getAttribute('href')) ?? '',
      /\/runs\/[\w-]+$/,
    )
    await reason.getByRole('button', { name: 'Show survey' }).click()
    const aside = page.getByRole('complementary', { name: 'Details' })
    await aside.getByText('Hasty used all 2 steps').waitFor()
    await kit.goTo(page, `/flows/${run.id}?task=fine`)
    await aside.locator('em', { hasText: 'good' }).waitFor()
    await aside.getByRole('button', { name: 'Show the JSON' }).click()
    await aside.getByText('"beds": 3').waitFor()

    await page.getByRole('link', { name: 'Run again' }).click()
    const dialog = page.getByRole('dialog', { name: 'Run again' })
    assert.equal(await dialog.getByRole('combobox', { name: 'Flow' }).inputValue(), 'The same parallel flow as before')
    assert.deepEqual(JSON.parse(await dialog.getByLabel('Input').inputValue()), { garden: 'north' })
    assert.equal(await dialog.getByLabel('Workers').inputValue(), '4')
    await dialog.getByLabel('Workers').fill('6')
    await dialog.getByRole('button', { name: 'Start flow' }).click()
    await page.waitForURL((url) => /\/flows\/[\w-]{36}$/.test(url.pathname) && !url.pathname.endsWith(run.id))
    const second = await ended(new URL(page.url()).pathname.split('/').at(-1) ?? '')
    assert.deepEqual([second.progress.total, second.input, second.workers], [2, { garden: 'north' }, 6])
    assert.deepEqual(troubles, [])
  })

  test('every ended flow run can be run again, and its worker time is told in words', async (t) => {
    const step = { type: 'task', id: 'only', function: 'muster.identity', args: 1 }
    const run = await play({ root: { type: 'sequential', steps: [step] } })
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    await page.getByRole('link', { name: 'Run again' }).waitFor()
    await page.getByText(/% spent on tasks, the rest idle$/).waitFor()
    const viewer = await kit.open(t, `/flows/${run.id}`, await kit.invite('viewer'))
    await viewer.page.getByText('The flow run is completed.').waitFor()
    assert.equal(await viewer.page.getByRole('link', { name: 'Run again' }).count(), 0)
    assert.deepEqual([...troubles, ...viewer.troubles], [])
  })

  test('axe finds nothing on a flow run that failed, and the page scrolls sideways at no width', async (t) => {
    const tag = 'long'
    const steps = [{ say: 'I look.', calls: [{ name: 'object_search', args: { type: 'bed' } }] }, { say: 'No.' }]
    const root = { type: 'sequential', steps: [{ type: 'task', id: tag, agent: 'Hasty', input: { tag, steps } }] }
    await kit.api(`PATCH ${kit.path}/agents/${hasty.id}`, { max_steps: 1 })
    const run = await play({ root })
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    await kit.checkLooks(page, `/flows/${run.id}?task=${tag}`, async () => {
      await page.getByRole('region', { name: 'Reason' }).getByText('used the 1 step').waitFor()
      assert.equal(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth'), 0)
    })
    assert.deepEqual(troubles, [])
  })
})

const read = (id: string): Promise<FlowRun> => kit.api<FlowRun>(`GET ${kit.path}/flow-runs/${id}`)

async function ended(id: string): Promise<FlowRun> {
  await until(async () => (await read(id)).completed_at !== null, 'the flow run has ended')
  return read(id)
}

const play = async (body: object): Promise<FlowRun> =>
  ended((await kit.api<FlowRun>(`POST ${kit.path}/flow-runs`, body)).id)
