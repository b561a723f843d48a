// The lists that open below fields, by keyboard, and the ways to what people look for.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import type { Agent } from '../../src/kernel/agent.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

const options = (page: Page): Locator => page.getByRole('option')
const untilShut = (page: Page): Promise<void> =>
  until(async () => (await options(page).count()) === 0, 'the list is shut')

describe('lists below fields', { skip }, () => {
  test('Enter takes the first tool of the list, and typed names that no tool has', async (t) => {
    const { page, troubles } = await kit.open(t, '/agents/new')
    const field = page.getByRole('combobox', { name: 'Tools' })
    const chosen = page.getByRole('list', { name: 'Chosen' }).getByRole('listitem')
    await field.fill('search')
    await options(page).first().waitFor()
    await page.keyboard.press('Enter')
    await chosen.getByText('object_search').waitFor()
    await page.keyboard.press('Enter')
    assert.equal(await chosen.count(), 1, 'Enter without letters takes nothing')
    await field.fill('object_get')
    await options(page).first().waitFor()
    await page.keyboard.press('Enter')
    await chosen.getByText('object_get', { exact: true }).waitFor()
    await field.fill('mcp:files/*')
    await page.keyboard.press('Enter')
    await chosen.getByText('mcp:files/*').waitFor()
    await field.fill('object')
    await options(page).first().waitFor()
    await page.keyboard.press('Escape')
    await untilShut(page)
    await page.getByRole('heading', { name: 'New agent', level: 1 }).waitFor()
    assert.equal(await chosen.count(), 3)
    assert.deepEqual(troubles, [])
  })

  test('Escape shuts the list first, and only then the dialog around it', async (t) => {
    const made = await kit.api<{ id: string }>(`POST ${kit.path}/objects`, { type: 'Person', properties: {} })
    await kit.api(`POST ${kit.path}/objects`, { type: 'Person', properties: { name: 'Ada' } })
    const { page, troubles } = await kit.open(t, '/objects')
    const dialogs: [place: string, open: string, dialog: string, field: string][] = [
      ['/objects', 'New object', 'New object', 'Type'],
      [`/objects/${made.id}`, 'Add relationship', 'Add relationship', 'Object'],
      ['/evals', 'New eval', 'New eval', 'Variants'],
      ['/settings/keys', 'Create key', 'Create key', 'Ends'],
      ['/settings/providers', 'Add provider', 'Add provider', 'Kind'],
      ['/organisation', 'New task', 'New task', 'Priority'],
      ['/flows', 'Start flow', 'Start flow', 'Flow'],
    ]
    for (const [place, open, name, field] of dialogs) {
      await kit.goTo(page, place)
      await page.getByRole('button', { name: open }).first().click()
      const dialog = page.getByRole('dialog', { name })
      await dialog.getByRole('combobox', { name: field }).press('ArrowDown')
      await options(page).first().waitFor()
      await page.keyboard.press('Escape')
      await untilShut(page)
      assert.equal(await dialog.count(), 1, `${name} stays`)
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
    }
    assert.deepEqual(troubles, [])
  })
})

describe('the ways to what people look for', { skip }, () => {
  test('the search and the start of the settings lead to the off switch and to the keys', async (t) => {
    const { page, troubles } = await kit.open(t, '/runs')
    const jump = async (text: string): Promise<void> => {
      await page.keyboard.press('Control+k')
      await page.getByRole('textbox', { name: 'Search or jump' }).fill(text)
      await page.getByRole('button', { name: /…$/ }).first().waitFor()
      await page.keyboard.press('Enter')
    }
    const halt = page.getByRole('region', { name: 'Off switch' }).getByRole('button', { name: 'Halt project' })
    const isReached = async (): Promise<void> => {
      await page.waitForURL('**/settings/limits#off-switch')
      await halt.waitFor()
      const isFocused = async () => (await page.evaluate('document.activeElement?.textContent')) === 'Halt project'
      await until(isFocused, 'the button has the focus')
      assert.equal(await page.getByRole('dialog').count(), 0, 'nothing is asked before the button is pressed')
    }
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    await jump('halt')
    await isReached()
    await jump('add a key')
    await page.waitForURL('**/settings/providers')
    await page.getByText('To use the models of a provider, add its key here.').waitFor()
    await page.getByRole('link', { name: 'The off switch' }).click()
    await isReached()
    assert.deepEqual(troubles, [])
  })

  test('a new agent deletes nothing unless somebody says so, and each right says what it allows', async (t) => {
    const { page, troubles } = await kit.open(t, '/agents/new')
    const may = (what: string): Locator => page.getByRole('checkbox', { name: `May ${what} objects` })
    await may('delete').waitFor()
    const states = await Promise.all(['create', 'update', 'delete'].map((what) => may(what).isChecked()))
    assert.deepEqual(states, [true, true, false])
    await page.getByText('It changes properties. Every version is kept.').waitFor()
    await page.getByLabel('Name').fill('Careful')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Careful', level: 1 }).waitFor()
    const { items } = await kit.api<{ items: Agent[] }>(`GET ${kit.path}/agents`)
    const rightsOf = (name: string) => items.find((agent) => agent.name === name)?.capabilities.canDeleteObjects
    assert.deepEqual([rightsOf('Careful'), rightsOf('Gardener')], [false, true], 'the API has its own default')
    assert.deepEqual(troubles, [])
  })
})
