// The playground in a real browser, against a real server whose parts of the supervisor system answer by the task.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, untilCount } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { type NodeModel, startNodeModel } from '../kit/node-model.ts'
import { finish } from '../kit/supervisor.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit
let model: NodeModel

before(async () => {
  if (skip) return
  model = await startNodeModel({ after: atEnd }, (name, prompt) => {
    if (name === 'supervisor') return { say: [JSON.stringify(decisionOn(prompt))] }
    if (name === 'escalation') return { say: ['Red ', 'or blue?'] }
    return finalTo(prompt)
  })
  kit = await startConsole({ after: atEnd })
  await kit.api('POST /api/providers', { name: 'node', kind: 'openai-compatible', base_url: model.url })
  for (const variant of ['blue', 'green']) await setUp(variant)
})

async function setUp(variant: string): Promise<void> {
  const part = (name: string, prompt_id: string) => ({ prompt_id, model: { provider: 'node', name } })
  const system = await kit.api<Record<string, unknown>>(`GET ${kit.path}/systems/${variant}`)
  await kit.api(`PUT ${kit.path}/systems/${variant}`, {
    ...system,
    supervisor: part('supervisor', 'supervisor_planner'),
    finalizer: part('finalizer', 'finalizer_agent'),
    escalation: part('escalation', 'hitl_escalation_handler'),
  })
}

/** A task that asks for a colour needs a person, until a person has answered. */
function decisionOn(prompt: string): object {
  const mustAsk = prompt.includes('Paint') && !prompt.includes('A person was asked meanwhile')
  const plan = [{ id: '1', description: 'Think it over', status: 'DONE', owner_agent: 'research_agent' }]
  return { ...finish(plan), action: mustAsk ? 'escalate' : 'finish' }
}

function finalTo(prompt: string) {
  if (prompt.includes('Count')) return { say: ['One, ', 'two, ', 'three.'], gate: 'count' }
  if (prompt.includes('Paint')) return { say: ['It is ', '**red**.'] }
  if (prompt.includes('Refuse')) return { say: [], ending: 'refuse' as const }
  return { say: ['Paris is ', 'the capital ', 'of **France**.'], gate: 'capital' }
}

const messages = (page: Page) => page.getByRole('log', { name: 'Messages' })

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

describe('the playground in a browser', { skip }, () => {
  test('an answer is written as it comes, survives a reload, and leads to its run', async (t) => {
    model.hold('capital')
    t.after(async () => model.release('capital'))
    const { page, troubles } = await kit.open(t, '/playground')
    await page.getByRole('heading', { name: 'Playground', level: 1 }).waitFor()
    await say(page, 'What is the capital of France?')
    await messages(page).getByText('Paris is').waitFor()
    await page.getByRole('list', { name: 'Plan' }).getByText('Think it over').waitFor()
    assert.match(new URL(page.url()).searchParams.get('chat') ?? '', /^[0-9a-f]{32}$/)
    await page.reload()
    await messages(page).getByText('Paris is').waitFor()
    await messages(page).getByText('What is the capital of France?').waitFor()
    model.release('capital')
    await messages(page).locator('strong', { hasText: 'France' }).waitFor()
    await untilCount(messages(page).getByRole('article', { name: 'Supervisor' }), 1)
    await messages(page).getByRole('button', { name: 'What happened' }).click()
    await messages(page).getByRole('heading', { name: 'Run of the supervisor, variant blue' }).waitFor()
    await messages(page).getByRole('link', { name: 'Open the run' }).first().click()
    await page.getByText(/finished in/).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('a question is answered in its layout, and the same run goes on', async (t) => {
    const { page, troubles } = await kit.open(t, '/playground')
    await say(page, 'Paint it.')
    const question = page.getByRole('region', { name: 'Your answer is needed' })
    await question.getByRole('button', { name: 'Answer' }).click()
    await question.getByText('Fill this in first.').waitFor()
    await question.getByLabel('Your answer').fill('Red')
    await question.getByRole('button', { name: 'Answer' }).click()
    await messages(page).locator('strong', { hasText: 'red' }).waitFor()
    await question.waitFor({ state: 'detached' })
    const { items } = await kit.api<{ items: Task[] }>(`GET ${kit.path}/tasks?kind=escalation`)
    assert.deepEqual([items[0]?.status, items[0]?.result], ['completed', 'Red'])
    assert.deepEqual(troubles, [])
  })

  test('a question is answered by the next message, in the chosen variant', async (t) => {
    const { page, troubles } = await kit.open(t, '/playground')
    await page.getByRole('combobox', { name: 'Variant' }).click()
    await page.getByRole('option', { name: 'green' }).click()
    assert.equal(new URL(page.url()).searchParams.get('variant'), 'green')
    await say(page, 'Paint it.')
    await page.getByRole('region', { name: 'Your answer is needed' }).waitFor()
    await page.getByLabel('Message', { exact: true }).fill('Red, please.')
    await page.keyboard.press('Enter')
    await messages(page).locator('strong', { hasText: 'red' }).waitFor()
    await messages(page).getByRole('button', { name: 'What happened' }).last().click()
    await messages(page).getByRole('heading', { name: 'Run of the supervisor, variant green' }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('Stop ends the run itself, and the chat goes on', async (t) => {
    model.hold('count')
    t.after(async () => model.release('count'))
    const { page, troubles } = await kit.open(t, '/playground')
    await say(page, 'Count.')
    await messages(page).getByText('One,').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await messages(page).getByText('The run was stopped.').waitFor()
    const { items } = await kit.api<{ items: { status: string }[] }>(`GET ${kit.path}/runs?limit=1`)
    assert.equal(items[0]?.status, 'cancelled')
    model.release('count')
    await say(page, 'Count again.')
    await messages(page).getByText('One, two, three.').waitFor()
    assert.deepEqual(troubles, [])
  })

  test('an answer that was given in the inbox appears when the person comes back', async (t) => {
    const { page, troubles } = await kit.open(t, '/playground')
    await say(page, 'Paint it.')
    await page.getByRole('region', { name: 'Your answer is needed' }).waitFor()
    const { items } = await kit.api<{ items: Task[] }>(`GET ${kit.path}/tasks?kind=escalation&status=pending`)
    const answered = await kit.muster.call(`PATCH ${kit.path}/tasks/${items[0]?.id}`, {
      body: { status: 'completed', result: 'Red' },
    })
    assert.equal(answered.status, 200)
    await page.evaluate('window.dispatchEvent(new Event("focus"))')
    await messages(page).locator('strong', { hasText: 'red' }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('an answer that was completed while nobody looked is there when the person comes back', async (t) => {
    model.hold('count')
    t.after(async () => model.release('count'))
    const { page, troubles } = await kit.open(t, '/playground')
    await say(page, 'Count.')
    await messages(page).getByText('One,').waitFor()
    await page.getByRole('link', { name: 'Objects' }).click()
    await page.getByRole('heading', { name: 'Objects', level: 1 }).waitFor()
    model.release('count')
    const newest = async () => (await kit.api<{ items: { status: string }[] }>(`GET ${kit.path}/runs?limit=1`)).items[0]
    await until(async () => (await newest())?.status === 'completed', 'the run ends')
    await page.goBack()
    await messages(page).getByText('One, two, three.').waitFor()
    await untilCount(messages(page).getByRole('article', { name: 'Supervisor' }), 1)
    assert.deepEqual(troubles, [])
  })

  test('a failure is told in plain words and can be tried again', async (t) => {
    const { page, troubles } = await kit.open(t, '/playground')
    await say(page, 'Refuse it.')
    await page
      .getByRole('alert')
      .getByText(/I will not\./)
      .waitFor()
    await page.getByRole('alert').getByRole('button', { name: 'Retry' }).click()
    await until(
      async () =>
        (await kit.api<{ items: { status: string }[] }>(`GET ${kit.path}/runs?status=failed`)).items.length > 1,
      'a second run fails',
    )
    await page
      .getByRole('alert')
      .getByText(/I will not\./)
      .waitFor()
    assert.deepEqual(troubles, [])
  })

  test('a component that the page does not know is shown as a placeholder, the others as they are', async (t) => {
    const { page, troubles } = await kit.open(t, '/playground')
    await page.route('**/v1/genui/layout', (route) =>
      route.fulfill({
        json: {
          components: [
            { type: 'text', id: 'a', value: 'All went well', tone: 'good' },
            { type: 'hologram', id: 'b', depth: 3 },
            { type: 'group', id: 'c', title: 'Choose', components: [{ type: 'slider', id: 'd' }, SELECT] },
            { type: 'table', id: 'e', columns: [{ label: 'Fact' }], rows: [{ cells: [null] }, { cells: [true] }] },
            { type: 'diff', id: 'f', changes: [{ field: 'x', kind: 'changed', before: 'old', after: 'new' }] },
            { type: 'chart', id: 'g', title: 'Bars', kind: 'bar', categories: ['a', 'b'], series: SERIES },
            { type: 'chart', id: 'h', title: 'Lines', kind: 'line', categories: ['a', 'b'], series: SERIES },
            { type: 'markdown', id: 'i', value: '**bold**' },
          ],
        },
      }),
    )
    await say(page, 'What is the capital?')
    await messages(page).getByRole('button', { name: 'What happened' }).click()
    await page.getByText('All went well').waitFor()
    await page.getByText('This page cannot show the component “hologram”.').waitFor()
    await page.getByText('This page cannot show the component “slider”.').waitFor()
    await page.getByRole('group', { name: 'Choose' }).getByLabel('Which').waitFor()
    for (const name of ['Bars', 'Lines']) await page.getByRole('heading', { name }).waitFor()
    await page.locator('.recharts-surface').nth(1).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('chats are kept in the browser, and a viewer is told that members chat', async (t) => {
    const { page, troubles } = await kit.open(t, '/playground')
    await say(page, 'What is the capital?')
    await messages(page).locator('strong', { hasText: 'France' }).waitFor()
    await page.getByRole('button', { name: 'New chat' }).click()
    await messages(page).getByText('Give the supervisor a task.').waitFor()
    await page.getByRole('button', { name: /^What is the capital\?/ }).click()
    await messages(page).locator('strong', { hasText: 'France' }).waitFor()
    assert.deepEqual(troubles, [])
    const { page: theirs } = await kit.open(t, '/playground', await kit.invite('viewer'))
    await theirs.getByText('Members and admins chat with the supervisor here.').waitFor()
    assert.equal(await theirs.getByLabel('Message').count(), 0)
  })

  test('axe finds nothing on the playground, with a question and a summary', async (t) => {
    const { page } = await kit.open(t, '/playground')
    await say(page, 'Paint it.')
    await page.getByRole('button', { name: 'Answer' }).waitFor()
    const chat = new URL(page.url()).search
    await kit.checkLooks(page, `/playground${chat}`, async () => {
      await page.getByRole('button', { name: 'Answer' }).waitFor()
      await page.getByRole('button', { name: 'What happened' }).click()
      await page.getByRole('heading', { name: /Run of the supervisor/ }).waitFor()
    })
  })
})

const SELECT = { type: 'select', id: 's', label: 'Which', options: [{ value: 'a', label: 'A' }] }
const SERIES = [
  { label: 'One', values: [1, 2] },
  { label: 'Two', values: [null, 3] },
]
