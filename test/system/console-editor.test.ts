// The flow editor in a real browser, against a real server.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { before, describe } from 'node:test'
import type { Page } from 'playwright-core'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, untilCount } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

interface Flow {
  id: string
  name: string
  root: { type: string; steps: { [field: string]: unknown }[] }
  enabled: boolean
}

const skip = noBrowser
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

const echo = (id: string) => ({ type: 'task', id, function: 'muster.identity', args: `{{input}} ${id}` })
const store = (name: string, steps: object[] = [echo('one'), echo('two'), echo('three')]): Promise<Flow> =>
  kit.api<Flow>(`POST ${kit.path}/flows`, { name, root: { type: 'sequential', steps } })
const readFlow = (id: string): Promise<Flow> => kit.api<Flow>(`GET ${kit.path}/flows/${id}`)
const json = (page: Page) => page.getByLabel('JSON', { exact: true }).and(page.getByRole('textbox'))
const treeOf = async (page: Page): Promise<unknown> => JSON.parse(await json(page).inputValue())
const row = (page: Page, name: string | RegExp) => page.getByRole('treeitem', { name })
const stepIds = async (page: Page): Promise<unknown[]> =>
  ((await treeOf(page)) as Flow['root']).steps.map(({ id, type }) => id ?? type)
const isFine = (page: Page): Promise<void> => page.getByText('This flow can run').waitFor()

describe('the flow editor in a browser', { skip }, () => {
  test('a flow is built by its form, mended where validation points, saved, changed and started', async (t) => {
    const { page, troubles } = await kit.open(t, '/flows/new')
    await page.getByRole('heading', { name: 'New flow', level: 1 }).waitFor()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Give the flow a name.').waitFor()
    await page.getByLabel('Name').fill('Watering')

    await row(page, 'Sequential').click()
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Agent' }).click()
    await page.getByRole('combobox', { name: 'Agent' }).fill('Gardner')
    const problems = page.getByRole('list', { name: 'Problems' })
    await problems.getByText(/There is no agent called Gardner/).waitFor()
    await row(page, 'Sequential').click()
    await problems.getByRole('button', { name: /Gardner/ }).click()
    await page.getByRole('combobox', { name: 'Agent' }).fill('Gardener')
    await page.getByRole('option', { name: 'Gardener', exact: true }).click()
    await page.getByRole('radiogroup', { name: 'Input is written as' }).getByText('JSON').click()
    await page.getByLabel('Input', { exact: true }).fill('{"tag": "watered", "steps": [{"say": "All is watered."}]}')
    await page.getByLabel('Id', { exact: true }).fill('water')
    await row(page, 'muster.ask').click()
    await page.getByLabel('Prompt', { exact: true }).fill('')
    await page.getByText('This flow can start, but a step will fail').waitFor()
    await row(page, 'Sequential').click()
    await page
      .getByRole('list', { name: 'Warnings' })
      .getByRole('button', { name: /^muster\.ask prompt is missing\./ })
      .click()
    await page
      .locator('[aria-invalid="true"]')
      .and(page.getByLabel('Prompt', { exact: true }))
      .waitFor()
    await page.getByRole('button', { name: 'Remove node' }).click()
    await isFine(page)
    await page.getByRole('button', { name: 'Save' }).click()

    await page.getByRole('heading', { name: 'Watering', level: 1 }).waitFor()
    const id = page.url().split('/').at(-1) ?? ''
    const water = { type: 'task', agent: 'Gardener', id: 'water' }
    const plan = { tag: 'watered', steps: [{ say: 'All is watered.' }] }
    assert.deepEqual((await readFlow(id)).root, { type: 'sequential', steps: [{ ...water, input: plan }] })

    await json(page).fill(JSON.stringify({ type: 'sequential', steps: [{ ...water, input: plan }, echo('after')] }))
    await row(page, 'after').click()
    assert.equal(await page.getByLabel('Id', { exact: true }).inputValue(), 'after')
    await page.getByText('unsaved changes').waitFor()
    await page.getByRole('button', { name: 'Save' }).click()
    await until(async () => (await readFlow(id)).root.steps.length === 2, 'the changed tree is saved')
    await page.getByText('unsaved changes').waitFor({ state: 'detached' })

    await page.getByRole('button', { name: 'Start flow' }).click()
    const dialog = page.getByRole('dialog', { name: 'Start flow' })
    await dialog.getByLabel('Input').fill('{"bed": ')
    await dialog.getByText(/^Line 1, column 9: The text ends too early/).waitFor()
    await dialog.getByLabel('Input').fill('{"bed": "roses"}')
    await dialog.getByLabel('Workers').fill('3')
    await dialog.getByLabel('Timeout').fill('60')
    await dialog.getByRole('button', { name: 'Start flow' }).click()
    await page.waitForURL(/\/flows\/[0-9a-f-]{36}$/)
    const run = await endOf(page.url().split('/').at(-1) ?? '')
    assert.deepEqual([run.status, run.flow_id, run.workers, run.input], ['completed', id, 3, { bed: 'roses' }])
    assert.deepEqual(troubles, [])
  })

  async function endOf(id: string): Promise<FlowRun> {
    const read = (): Promise<FlowRun> => kit.api<FlowRun>(`GET ${kit.path}/flow-runs/${id}`)
    await until(async () => (await read()).completed_at !== null, 'the flow run ends')
    return read()
  }

  inSystem('the tree is changed by keyboard alone, and every change is undone and redone', async (t) => {
    const flow = await store('by keys')
    const { page, troubles } = await kit.open(t, `/flows/definitions/${flow.id}`)
    await isFine(page)
    await page.getByRole('tree').focus()
    await page.keyboard.press('ArrowDown')
    assert.equal(await row(page, 'one').getAttribute('aria-selected'), 'true')
    await page.keyboard.press('Alt+ArrowDown')
    assert.deepEqual(await stepIds(page), ['two', 'one', 'three'])
    await page.keyboard.press('Control+d')
    assert.deepEqual(await stepIds(page), ['two', 'one', 'one_2', 'three'])
    await page.keyboard.press('Delete')
    assert.deepEqual(await stepIds(page), ['two', 'one', 'three'])
    await page.keyboard.press('End')
    await page.keyboard.press('Delete')
    assert.deepEqual(await stepIds(page), ['two', 'one'])
    await page.keyboard.press('Control+z')
    await page.keyboard.press('Control+z')
    assert.deepEqual(await stepIds(page), ['two', 'one', 'one_2', 'three'])
    await page.keyboard.press('Control+Shift+Z')
    assert.deepEqual(await stepIds(page), ['two', 'one', 'three'])
    await page.keyboard.press('Enter')
    await until(
      () => page.evaluate<boolean>(`document.activeElement?.labels?.[0]?.textContent === 'Function'`),
      'Enter leads into the form',
    )
    await page.keyboard.press('Control+s')
    await until(async () => (await readFlow(flow.id)).root.steps.length === 3, 'Ctrl + S saves')
    assert.deepEqual(troubles, [])
  })

  inSystem('a node is wrapped, moved in and out, unwrapped, and becomes another pattern with its nodes', async (t) => {
    const flow = await store('by buttons')
    const { page, troubles } = await kit.open(t, `/flows/definitions/${flow.id}`)
    await row(page, 'one').click()
    await page.getByRole('button', { name: 'Wrap' }).click()
    await page.getByRole('menuitem', { name: 'Parallel' }).click()
    await row(page, 'two').click()
    await page.getByRole('button', { name: 'Move in' }).click()
    assert.deepEqual(await stepIds(page), ['parallel', 'three'])
    await page.getByRole('button', { name: 'Move out' }).click()
    assert.deepEqual(await stepIds(page), ['parallel', 'two', 'three'])
    await page.getByRole('button', { name: 'Move up' }).click()
    await page.getByRole('button', { name: 'Move down' }).click()
    await page.getByRole('button', { name: 'Duplicate node' }).click()
    assert.deepEqual(await stepIds(page), ['parallel', 'two', 'two_2', 'three'])
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('button', { name: 'Redo' }).click()
    await row(page, 'Parallel').click()
    await page.getByRole('button', { name: 'Wrap' }).click()
    await page.getByRole('menuitem', { name: 'Unwrap' }).click()
    assert.deepEqual(await stepIds(page), ['one', 'two', 'two_2', 'three'])
    await row(page, 'Sequential').click()
    await page.getByRole('combobox', { name: 'Pattern' }).click()
    await page.getByRole('option', { name: 'Parallel' }).click()
    await page.getByRole('combobox', { name: 'Aggregate' }).click()
    await page.getByRole('option', { name: 'concat' }).click()
    const tree = (await treeOf(page)) as { type: string; branches: unknown[]; aggregate: string }
    assert.deepEqual([tree.type, tree.branches.length, tree.aggregate], ['parallel', 4, 'concat'])
    await page.getByRole('radiogroup', { name: 'Show the whole flow as' }).getByText('Picture').click()
    await page
      .getByRole('region', { name: 'Picture of the flow' })
      .getByRole('button', { name: /^three/ })
      .click()
    assert.equal(await row(page, 'three').getAttribute('aria-selected'), 'true')
    assert.deepEqual(troubles, [])
  })

  inSystem('every pattern has a form, and one that Muster accepts', async (t) => {
    const { page, troubles } = await kit.open(t, '/flows/new')
    for (const name of [
      'Parallel',
      'Loop',
      'Map and reduce',
      'Pipeline',
      'Fork and join',
      'Adaptive',
      'Hierarchical',
    ]) {
      await row(page, 'Sequential').click()
      await page.getByRole('button', { name: 'Add', exact: true }).click()
      await page.getByRole('menuitem', { name: new RegExp(`^${name}`) }).click()
      await page.getByRole('region', { name: 'Chosen node' }).getByRole('heading', { name }).waitFor()
    }
    await page.getByRole('combobox', { name: 'Queen' }).fill('Gardener')
    await page.getByLabel('Workers').first().fill('Gardener')
    await page.keyboard.press('Enter')
    await page.getByLabel('Goal').fill('Water {{input.bed}}.')
    await isFine(page)
    await row(page, 'Adaptive').click()
    await page.getByLabel('Workers').fill('a, b')
    await page.getByLabel('Edges').fill('a > b')
    await page.getByRole('combobox', { name: 'Topology' }).click()
    await page.getByRole('option', { name: 'custom' }).click()
    await isFine(page)
    const tree = (await treeOf(page)) as Flow['root']
    const adaptive = tree.steps.find(({ type }) => type === 'adaptive')
    assert.deepEqual([adaptive?.workers, adaptive?.edges], [['a', 'b'], [['a', 'b']]])
    await page.getByRole('button', { name: 'Start flow' }).click()
    const input = await page.getByRole('dialog').getByLabel('Input').inputValue()
    assert.deepEqual(Object.keys(JSON.parse(input)).sort(), ['bed', 'items', 'text'])
    assert.deepEqual(troubles, [])
  })

  inSystem('JSON that is wrong keeps the last good tree, says where, and is discarded', async (t) => {
    const flow = await store('wrong text')
    const { page, troubles } = await kit.open(t, `/flows/definitions/${flow.id}`)
    await json(page).fill('{\n  "type": "sequential",\n  "steps": [}\n')
    await page.getByText(/^Line 3, column 13: Expected a value or \]/).waitFor()
    await row(page, 'three').waitFor()
    await page.getByText('the tree and this form wait', { exact: false }).waitFor()
    await page.getByRole('button', { name: 'Go there' }).click()
    const letter = await page.evaluate<string>('document.activeElement.value[document.activeElement.selectionStart]')
    assert.equal(letter, '}')
    await page.getByRole('button', { name: 'Discard' }).click()
    assert.deepEqual(await stepIds(page), ['one', 'two', 'three'])
    await json(page).fill('{"type": "task", "function": "muster.identity"}')
    await row(page, 'muster.identity').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    assert.deepEqual(await stepIds(page), ['one', 'two', 'three'])
    assert.deepEqual(troubles, [])
  })

  inSystem('a flow begins with a template, with a recommended pattern, and takes in a stored flow', async (t) => {
    await store('to insert')
    const { page, troubles } = await kit.open(t, '/flows/new')
    const templates = page.getByRole('list', { name: 'Templates' })
    await templates.getByText('round after round', { exact: false }).waitFor()
    await templates.getByRole('button', { name: /^Refine/ }).click()
    assert.equal(await page.getByLabel('Name').inputValue(), 'refine')
    assert.equal(((await treeOf(page)) as { type: string }).type, 'loop')
    await page.getByText(/^Begin with a template/).click()
    await page.getByLabel('Your work, in words').fill('Summarise 40 reports, each by itself, and put them together.')
    await page.getByRole('button', { name: 'Recommend a pattern' }).click()
    await page.getByRole('button', { name: 'Use it' }).click()
    await isFine(page)
    const { page: named } = await kit.open(t, '/flows/new?template=refine')
    await isFine(named)
    await row(named, 'draft').click()
    await named.getByRole('button', { name: 'Add', exact: true }).click()
    await named.getByRole('menuitem', { name: /Stored flow/ }).click()
    const dialog = named.getByRole('dialog', { name: 'Insert a copy' })
    await dialog.getByRole('combobox', { name: 'Flow' }).click()
    await named.getByRole('option', { name: 'to insert' }).click()
    await dialog.getByRole('button', { name: 'Insert' }).click()
    await row(named, 'three').waitFor()
    await isFine(named)
    const { page: nowhere } = await kit.open(t, '/flows/new?template=nonsense')
    await nowhere.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('unsaved changes are kept through a reload, and leaving asks first', async (t) => {
    const flow = await store('kept')
    const { page } = await kit.open(t, `/flows/definitions/${flow.id}`)
    await page.getByLabel('Name').fill('kept well')
    await page.getByRole('link', { name: 'Runs' }).click()
    const dialog = page.getByRole('dialog', { name: 'Unsaved changes' })
    await dialog.getByRole('button', { name: 'Stay' }).click()
    assert.equal(await page.getByLabel('Name').inputValue(), 'kept well')
    await until(
      () => page.evaluate(() => Object.keys(sessionStorage).some((key) => key.startsWith('muster-flow-draft'))),
      'the draft is kept',
    )
    page.removeAllListeners('dialog')
    page.on('dialog', (asked) => void asked.accept())
    await page.reload()
    await page.getByText('Your unsaved changes are back').waitFor()
    assert.equal(await page.getByLabel('Name').inputValue(), 'kept well')
    await page.getByRole('button', { name: 'Discard them' }).click()
    assert.equal(await page.getByLabel('Name').inputValue(), 'kept')
    await page.getByLabel('Name').fill('never')
    await page.getByRole('link', { name: 'Runs' }).click()
    await dialog.getByRole('button', { name: 'Leave without saving' }).click()
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    await page.goBack()
    await isFine(page)
    assert.equal(await page.getByLabel('Name').inputValue(), 'kept')
    assert.equal((await readFlow(flow.id)).name, 'kept')
  })

  inSystem(
    'a name that is taken and a change by somebody else are explained, and nothing is overwritten unasked',
    async (t) => {
      await store('taken')
      const flow = await store('mine')
      const { page, troubles } = await kit.open(t, `/flows/definitions/${flow.id}`)
      await page.getByLabel('Name').fill('taken')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('There is a flow called taken already.').waitFor()
      await page.getByLabel('Name').fill('mine too')
      await kit.api(`PATCH ${kit.path}/flows/${flow.id}`, { name: 'theirs' })
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Somebody else changed this flow after you opened it').waitFor()
      assert.equal((await readFlow(flow.id)).name, 'theirs')
      await page.getByRole('button', { name: 'Save mine over it' }).click()
      await page.getByRole('heading', { name: 'mine too', level: 1 }).waitFor()
      await kit.api(`PATCH ${kit.path}/flows/${flow.id}`, { name: 'theirs again' })
      await page.getByLabel('Name').fill('x')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('button', { name: 'Load their version' }).click()
      assert.equal(await page.getByLabel('Name').inputValue(), 'theirs again')
      await json(page).fill('{"type": "task", "agent": "Nobody"}')
      await page.getByRole('button', { name: 'Save' }).click()
      await page
        .getByRole('alert')
        .getByText(/no agent called Nobody/)
        .waitFor()
      assert.deepEqual(troubles, [])
    },
  )

  inSystem('a flow is exported, duplicated, disabled, and deleted unless an agent is this flow', async (t) => {
    const flow = await store('to copy')
    const agent = { name: 'Flowing', flow_type: 'flow', flow: 'to copy' }
    const used = await kit.api<{ id: string }>(`POST ${kit.path}/agents`, agent)
    const { page, troubles } = await kit.open(t, `/flows/definitions/${flow.id}`)
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const file = await download
    assert.equal(file.suggestedFilename(), 'to-copy.flow.json')
    assert.deepEqual(JSON.parse(await readFile(await file.path(), 'utf8')), { name: 'to copy', root: flow.root })

    await page.getByRole('switch', { name: 'Enabled' }).click({ force: true })
    await until(async () => !(await readFlow(flow.id)).enabled, 'the flow is disabled')
    await page.getByRole('button', { name: 'Start flow' }).click()
    const dialog = page.getByRole('dialog', { name: 'Start flow' })
    await dialog.getByRole('button', { name: 'Start flow' }).click()
    await dialog.getByText('The flow to copy is disabled. Enable it first.').waitFor()
    await page.keyboard.press('Escape')

    await page.getByRole('button', { name: 'Delete' }).click()
    const asked = page.getByRole('dialog', { name: 'Delete this flow?' })
    await asked.getByRole('button', { name: 'Delete' }).click()
    await asked.getByText('The agent Flowing is this flow: it cannot be deleted meanwhile.').waitFor()
    await kit.muster.call(`DELETE ${kit.path}/agents/${used.id}`)
    await asked.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('link', { name: 'Duplicate' }).click()
    await page.getByRole('heading', { name: 'New flow', level: 1 }).waitFor()
    assert.equal(await page.getByLabel('Name').inputValue(), 'to copy copy')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'to copy copy', level: 1 }).waitFor()
    await page.getByRole('button', { name: 'Delete' }).click()
    await asked.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'Flows', level: 1 }).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem(
    'a member starts but does not change, a viewer looks, and a flow of the code is only switched',
    async (t) => {
      const flow = await store('roles')
      const place = `/flows/definitions/${flow.id}`
      const { page: members } = await kit.open(t, place, await kit.invite('member'))
      await members.getByText('Only an admin of the project changes flows.').waitFor()
      assert.equal(await members.getByRole('button', { name: 'Save' }).count(), 0)
      await untilCount(members.getByRole('button', { name: 'Start flow' }), 1)
      const { page: viewers } = await kit.open(t, place, await kit.invite('viewer'))
      await isFine(viewers)
      for (const name of ['Save', 'Start flow', 'Delete', 'Add', 'Remove node']) {
        assert.equal(await viewers.getByRole('button', { name, exact: true }).count(), 0, name)
      }
      assert.equal(await json(viewers).getAttribute('readonly'), '')
      const { page, troubles } = await kit.open(t, '/flows')
      await page.route(`**/flows/${flow.id}`, async (route) => {
        const answer = await route.fetch()
        await route.fulfill({ response: answer, json: { ...(await answer.json()), source: 'app' } })
      })
      await kit.goTo(page, place)
      await page.getByText('This flow follows the code of the app module.', { exact: false }).waitFor()
      assert.equal(await page.getByRole('button', { name: 'Save' }).count(), 0)
      await page.getByRole('switch', { name: 'Enabled' }).click({ force: true })
      await until(async () => !(await readFlow(flow.id)).enabled, 'the flow is disabled')
      assert.deepEqual(troubles, [])
    },
  )

  inSystem('axe finds nothing on a new flow and on a stored one with problems', async (t) => {
    const flow = await store('looks')
    const { page } = await kit.open(t, '/flows/new')
    await kit.checkLooks(page, '/flows/new', async () => {
      await page.getByRole('list', { name: 'Templates' }).waitFor()
      await isFine(page)
    })
    await kit.checkLooks(page, `/flows/definitions/${flow.id}`, async () => {
      await isFine(page)
      await row(page, 'two').click()
    })
  })
})
