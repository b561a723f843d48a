// The evals in a real browser, against a real server. Green has one specialist, so its routes differ from blue's.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Eval, ListedEval } from '../../src/kernel/eval.ts'
import type { AgentRunAnswer, SystemConfig } from '../../src/kernel/supervisor.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, untilCount, withoutMissingFiles } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { type NodeModel, startNodeModel } from '../kit/node-model.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit
/** The model of the system "slow", which answers when the gate is open. */
let slow: NodeModel

const ROUTE = ['research_agent', 'transform_agent']
const CASES = [
  { task: 'Tell me about rain.', expect: { status: 'DONE' } },
  { task: 'Compare rain with snow.', expect: { status: 'DONE', route: ROUTE } },
]

before(async () => {
  if (skip) return
  kit = await startConsole({ after: atEnd })
  slow = await startNodeModel({ after: atEnd }, () => ({ say: ['{', '}'], gate: 'slow', ending: 'cut' }))
  await kit.api('POST /api/providers', { name: 'slow', kind: 'openai-compatible', base_url: slow.url })
  const { specialists, supervisor, finalizer, escalation } = await kit.api<SystemConfig>(`GET ${kit.path}/systems/blue`)
  const rest = { finalizer, escalation, traffic: 0 }
  await kit.api(`PUT ${kit.path}/systems/green`, { supervisor, specialists: specialists.slice(0, 1), ...rest })
  const planner = { ...supervisor, model: { provider: 'slow', name: 'slow' } }
  await kit.api(`PUT ${kit.path}/systems/slow`, { supervisor: planner, specialists, ...rest })
  const planned = await kit.api<{ messages: object[] }>(`GET ${kit.path}/prompts/supervisor_planner/variants/blue`)
  await kit.api(`PUT ${kit.path}/prompts/supervisor_planner/variants/slow`, { messages: planned.messages })
})

const readEval = (id: string): Promise<Eval> => kit.api<Eval>(`GET ${kit.path}/evals/${id}`)

async function start(name: string, cases: object[] = CASES, variants = ['blue', 'green']): Promise<ListedEval> {
  return kit.api<ListedEval>(`POST ${kit.path}/evals`, { name, cases, variants })
}

async function play(name: string, cases?: object[]): Promise<Eval> {
  const { id } = await start(name, cases)
  await until(async () => (await readEval(id)).status !== 'running', 'the eval ends')
  return readEval(id)
}

describe('the evals in a browser', { skip }, () => {
  test('an eval is made, watched to its end and read, the case that changed first', async (t) => {
    const { page, troubles } = await kit.open(t, '/evals')
    await page.getByRole('heading', { name: 'Evals', level: 1 }).waitFor()
    await page.getByRole('button', { name: 'New eval' }).first().click()
    const dialog = page.getByRole('dialog', { name: 'New eval' })
    await dialog.getByLabel('Name').fill('Rain and snow')
    const cases = dialog.getByLabel('Cases')
    await cases.fill('[{"task": "Tell me.", "expect": {"stauts": "DONE"}}]')
    await dialog.getByText('Case 1 expects "stauts"; known are status, contains, route, max_steps.').waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Start eval' }).isDisabled(), true)
    await cases.fill(JSON.stringify(CASES))
    await dialog.getByText('4 runs: 2 cases on blue, green.').waitFor()
    await dialog.getByRole('button', { name: 'Start eval' }).click()
    await page.getByRole('heading', { name: 'Rain and snow', level: 1 }).waitFor()
    await page.getByText(/^blue passes 100 %\. green passes 50 %, −50 points/).waitFor()

    const comparison = page.getByRole('region', { name: 'Comparison' })
    await comparison.getByRole('row', { name: /^blue 100 %/ }).waitFor()
    await comparison.getByRole('row', { name: /^green 50 % −50 points/ }).waitFor()
    await page.getByRole('figure').filter({ hasText: 'Right outcomes' }).locator('svg').first().waitFor()

    await page.reload()
    const first = page.getByRole('list', { name: 'Case list' }).getByRole('listitem').first()
    await first.getByText('Compare rain with snow.').click()
    await first.getByText(/The route is .*; expected was research_agent → transform_agent\./).waitFor()
    await page.getByText('Changed 1').click()
    await untilCount(page.getByRole('list', { name: 'Case list' }).getByRole('listitem'), 1)
    assert.ok(await first.getByRole('link', { name: 'Compare the runs of blue and green' }).getAttribute('href'))
    await first.getByRole('link', { name: 'Run of green' }).click()
    await page.getByRole('heading', { name: 'The supervisor system', level: 1 }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('the list shows status, progress and result, and leads to the eval', async (t) => {
    const one = await play('Listed')
    const { page, troubles } = await kit.open(t, '/evals')
    const row = page.getByRole('row', { name: /Listed/ })
    await row.getByText('completed').waitFor()
    await row.getByText('4 of 4').waitFor()
    await row.getByText('blue 100 % · green 50 %').waitFor()
    await row.getByRole('link', { name: 'Listed' }).click()
    await page.getByRole('heading', { name: 'Listed', level: 1 }).waitFor()
    assert.ok(page.url().endsWith(one.id))
    assert.deepEqual(troubles, [])
  })

  test('an eval under way is shown as it moves, and Cancel ends it with the results so far', async (t) => {
    slow.hold('slow')
    t.after(async () => slow.release('slow'))
    const { id } = await start('Held', [{ task: 'Anything' }], ['blue', 'slow'])
    const { page, troubles } = await kit.open(t, `/evals/${id}`)
    await page.getByText(/^1 of 2 results are there\. blue passes 100 %\./).waitFor()
    await page.getByRole('listitem').getByText('running').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('The eval Held is cancelled. Its results so far stay.').waitFor()
    await page.getByText(/^The eval was cancelled after/).waitFor()
    assert.equal((await readEval(id)).status, 'cancelled')

    const { id: other } = await start('Held again', [{ task: 'Anything' }], ['slow'])
    await kit.goTo(page, '/evals')
    await page.getByRole('button', { name: 'Cancel Held again' }).click()
    await page.getByRole('row', { name: /cancelled Held again/ }).waitFor()
    assert.equal((await readEval(other)).status, 'cancelled')
    assert.deepEqual(troubles, [])
  })

  test('cases are added by a form and from a recorded run; a refusal keeps what was typed', async (t) => {
    const { body: recorded } = await kit.muster.call<AgentRunAnswer>('POST /v1/agent/run', {
      body: { input: { task: 'A recorded task.' } },
      headers: { 'x-project-id': kit.project },
    })
    const { run_id } = recorded.metadata
    const { page, troubles } = await kit.open(t, '/evals')
    await page.getByRole('button', { name: 'New eval' }).first().click()
    const dialog = page.getByRole('dialog', { name: 'New eval' })
    await dialog.getByLabel('Name').fill('By form')
    await dialog.getByText('Add cases by form').click()
    await dialog.getByLabel('Task').fill('Name a colour.')
    await dialog.getByLabel('Output contains').fill('colour')
    await dialog.getByLabel('Route').fill('research_agent, transform_agent')
    await dialog.getByLabel('Route').press('Enter')
    await dialog.getByRole('combobox', { name: 'Add a recorded run' }).click()
    await page.getByRole('option', { name: 'A recorded task.' }).click()
    const cases = dialog.getByLabel('Cases')
    assert.deepEqual(JSON.parse(await cases.inputValue()), [
      { task: 'Name a colour.', expect: { contains: 'colour', route: ROUTE } },
      { run_id },
    ])
    await cases.fill('[{"run_id": "0198f2a0-0000-7000-8000-000000000000"}]')
    await dialog.getByRole('button', { name: 'Start eval' }).click()
    await dialog.getByRole('alert').waitFor()
    assert.equal(await dialog.getByLabel('Name').inputValue(), 'By form')
    await cases.fill(JSON.stringify([{ run_id }]))
    await dialog.getByRole('button', { name: 'Start eval' }).click()
    await page.getByText(/^blue passes 100 %\./).waitFor()
    await page.getByText('A recorded task.').waitFor()
    assert.deepEqual(troubles, [])
  })

  test('charts that cannot be loaded leave the rest of the page alive', async (t) => {
    const { id } = await play('Without charts')
    const { page, troubles } = await kit.open(t, '/evals')
    await page.route('**/assets/eval-charts-*', (route) => route.abort())
    await kit.goTo(page, `/evals/${id}`)
    await page.getByText('The charts cannot be shown.').waitFor()
    await page.getByRole('region', { name: 'Cases' }).getByText('Tell me about rain.').waitFor()
    assert.deepEqual(withoutMissingFiles(troubles), [])
  })

  test('an unknown eval says so, and a viewer learns who sees evals', async (t) => {
    const { page, troubles } = await kit.open(t, `/evals/${kit.agent.id}`)
    await page.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
    const { page: theirs } = await kit.open(t, '/evals', await kit.invite('viewer'))
    await theirs.getByText('Evals start runs, so members of the project see them.').waitFor()
    assert.equal(await theirs.getByRole('button', { name: 'New eval' }).count(), 0)
    assert.deepEqual(troubles, [])
  })

  test('axe finds nothing on the evals, dark and light, on a desktop and on a phone', async (t) => {
    const one = await play('Looks')
    const { page, troubles } = await kit.open(t, '/evals')
    await kit.checkLooks(page, '/evals', () => page.getByText('blue 100 % · green 50 %').first().waitFor())
    await kit.checkLooks(page, `/evals/${one.id}`, async () => {
      await page.getByRole('figure').first().locator('svg').first().waitFor()
      await page.getByText('Compare rain with snow.').first().click()
      await page
        .getByText(/expected was/)
        .first()
        .waitFor()
    })
    await kit.checkLooks(page, '/evals', async () => {
      await page.getByRole('button', { name: 'New eval' }).first().click()
      await page.getByRole('dialog').getByText('Add cases by form').click()
      await page.getByRole('button', { name: 'Use the example' }).click()
      await page.getByText(/^4 runs: 2 cases/).waitFor()
    })
    assert.deepEqual(troubles, [])
  })
})
