// The prompts page in a real browser, against a real server.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Prompt } from '../../src/kernel/prompt.ts'
import type { SystemConfig } from '../../src/kernel/supervisor.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'

const skip = noBrowser
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

const variant = (promptId: string, name: string): string => `${kit.path}/prompts/${promptId}/variants/${name}`
const read = (promptId: string, name: string): Promise<Prompt> => kit.api<Prompt>(`GET ${variant(promptId, name)}`)
const save = (promptId: string, name: string, content: string): Promise<Prompt> =>
  kit.api<Prompt>(`PUT ${variant(promptId, name)}`, { messages: [{ role: 'system', content }] })

const versionsOf = (page: Page, name: string) => page.getByRole('region', { name: `Versions of ${name}` })
const compared = (page: Page, before: string, after: string) =>
  page.getByRole('table', { name: new RegExp(`^${before} compared with ${after}:`) })

describe('the prompts in a browser', { skip }, () => {
  test('variants stand side by side; a new version is saved, compared and rolled back', async (t) => {
    const { page, troubles } = await kit.open(t, '/prompts')
    await page.getByRole('heading', { name: 'Prompts', level: 1 }).waitFor()
    await page
      .getByRole('region', { name: 'System blue' })
      .getByRole('cell', { name: 'Planner', exact: true })
      .waitFor()
    await page.getByRole('region', { name: 'Prompt list' }).getByRole('link', { name: 'research_agent' }).click()
    await compared(page, 'blue', 'green').getByText('You are a researcher.').waitFor()
    assert.ok(page.url().endsWith('?prompt=research_agent'), page.url())

    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    const editor = page.getByRole('dialog', { name: 'Edit research_agent, blue' })
    await editor.getByLabel('Text of message 1').fill('You look things up for {{NOBODY}}.')
    await editor.getByText('{{NOBODY}}: not a variable. It is sent unchanged.').waitFor()
    await compared(page, 'Before', 'After').getByText('You look things up').waitFor()
    await editor.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Version 2 of research_agent, blue, is saved.').waitFor()
    const second = await read('research_agent', 'blue')
    assert.deepEqual([second.version, second.messages[0]?.content], [2, 'You look things up for {{NOBODY}}.'])

    const versions = versionsOf(page, 'blue')
    await versions.getByRole('row', { name: /^2 .* in use/ }).waitFor()
    await versions.getByRole('row', { name: /^1 Muster .* came with Muster/ }).waitFor()
    await versions.getByRole('button', { name: 'Changes in version 2' }).click()
    await compared(page, 'Version 1', 'Version 2').getByText('You look things up').waitFor()

    await versions.getByRole('button', { name: 'Roll back to version 1' }).click()
    const dialog = page.getByRole('dialog', { name: 'Roll back research_agent, blue, to version 1' })
    await dialog.getByRole('table', { name: /^Version 2 compared with Version 1:/ }).waitFor()
    await dialog.getByRole('button', { name: 'Roll back' }).click()
    await versions.getByRole('row', { name: /^3 .* in use, rolled back to version 1/ }).waitFor()
    const third = await read('research_agent', 'blue')
    assert.equal(third.version, 3)
    assert.match(third.messages[0]?.content ?? '', /^You are a researcher\./)
    assert.deepEqual(troubles, [])
  })

  test('the address says which variants are compared, and one may stand alone', async (t) => {
    const { page, troubles } = await kit.open(t, '/prompts?prompt=finalizer_agent&variant=green')
    await compared(page, 'green', 'blue').waitFor()
    await page.getByRole('combobox', { name: 'Compare with' }).click()
    await page.getByRole('option', { name: 'nothing' }).click()
    await page.getByText('{{USER_INPUT}}').first().waitFor()
    assert.equal(await compared(page, 'green', 'blue').count(), 0)
    await page.reload()
    await versionsOf(page, 'green').waitFor()
    assert.equal(await compared(page, 'green', 'blue').count(), 0)
    await page.getByRole('combobox', { name: 'Variant' }).click()
    await page.getByRole('option', { name: 'blue' }).click()
    await versionsOf(page, 'blue').waitFor()
    assert.deepEqual(troubles, [])
  })

  test('a change by somebody else meanwhile is told, and the text that was typed stays', async (t) => {
    await save('notes', 'blue', 'First.')
    const { page, troubles } = await kit.open(t, '/prompts?prompt=notes')
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    const editor = page.getByRole('dialog', { name: 'Edit notes, blue' })
    await editor.getByLabel('Text of message 1').fill('Mine.')
    await save('notes', 'blue', 'Theirs.')
    await editor.getByRole('button', { name: 'Save', exact: true }).click()
    await editor.getByText(/The prompt is at version 2 by now, not at 1/).waitFor()
    assert.equal(await editor.getByLabel('Text of message 1').inputValue(), 'Mine.')
    await editor.getByRole('button', { name: 'Save over version 2' }).click()
    await editor.waitFor({ state: 'detached' })
    assert.deepEqual(
      [(await read('notes', 'blue')).version, (await read('notes', 'blue')).messages[0]?.content],
      [3, 'Mine.'],
    )
    assert.deepEqual(troubles, [])
  })

  test('a prompt and a variant are made; a variant is deleted, and a rollback brings it back', async (t) => {
    const { page, troubles } = await kit.open(t, '/prompts')
    await page.getByRole('button', { name: 'New prompt' }).click()
    const fresh = page.getByRole('dialog', { name: 'New prompt' })
    await fresh.getByLabel('Name').fill('price_agent')
    await fresh.getByLabel('Text of message 1').fill('You work out prices.')
    await fresh.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'price_agent', level: 2 }).waitFor()

    await page.getByRole('button', { name: 'New variant' }).click()
    const copy = page.getByRole('dialog', { name: 'New variant' })
    await copy.getByLabel('Variant').fill('blue')
    await copy.getByRole('button', { name: 'Save' }).click()
    await copy.getByText('price_agent has a variant blue already. Choose another name.').waitFor()
    await copy.getByLabel('Variant').fill('green')
    await copy.getByRole('button', { name: 'Remove message 2' }).click()
    await copy.getByRole('button', { name: 'Add a message' }).click()
    await copy.getByLabel('Text of message 2').fill('The task: {{USER_INPUT}}')
    await copy.getByRole('button', { name: 'Save' }).click()
    await compared(page, 'green', 'blue').waitFor()
    assert.equal((await read('price_agent', 'green')).messages.length, 2)

    await page.getByRole('button', { name: 'Delete' }).click()
    const ask = page.getByRole('dialog', { name: 'Delete the variant green of price_agent' })
    await ask.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('The variant green was deleted.').waitFor()
    assert.equal((await kit.muster.call(`GET ${variant('price_agent', 'green')}`)).status, 404)
    const versions = versionsOf(page, 'green')
    await versions.getByRole('row', { name: /deleted the variant/ }).waitFor()
    await versions.getByRole('button', { name: 'Roll back to version 1' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
    await compared(page, 'green', 'blue').waitFor()
    assert.equal((await read('price_agent', 'green')).version, 3)
    assert.deepEqual(troubles, [])
  })

  test('a system is edited, and copied with its prompts; a prompt that it lacks is named', async (t) => {
    const { page, troubles } = await kit.open(t, '/prompts')
    const green = page.getByRole('region', { name: 'System green' })
    await green.getByText('0 % of requests').waitFor()
    await green.getByRole('button', { name: 'Edit' }).click()
    const edit = page.getByRole('dialog', { name: 'Edit the system green' })
    await edit.getByLabel('Traffic').fill('300')
    const parts = await edit.getByLabel('Parts').inputValue()
    await edit.getByLabel('Parts').fill('{')
    assert.equal(await edit.getByRole('button', { name: 'Save' }).isDisabled(), true)
    await edit.getByLabel('Parts').fill(parts.replace('"tools": []', '"tools": ["no_such_tool"]'))
    await edit.getByRole('button', { name: 'Save' }).click()
    await edit
      .getByText(/no_such_tool/)
      .last()
      .waitFor()
    await edit.getByLabel('Parts').fill(parts)
    await edit.getByRole('button', { name: 'Save' }).click()
    await green.getByText('75 % of requests').waitFor()
    assert.equal((await kit.api<SystemConfig>(`GET ${kit.path}/systems/green`)).traffic, 300)

    await green.getByRole('button', { name: 'Copy' }).click()
    const copy = page.getByRole('dialog', { name: 'Copy the system green' })
    await copy.getByLabel('Name').fill('red')
    await copy.getByRole('button', { name: 'Save' }).click()
    const red = page.getByRole('region', { name: 'System red' })
    await red.getByRole('link', { name: 'supervisor_planner, red' }).waitFor()
    assert.deepEqual(
      (await read('supervisor_planner', 'red')).messages,
      (await read('supervisor_planner', 'green')).messages,
    )
    await kit.api(`DELETE ${variant('supervisor_planner', 'red')}`)
    await page.reload()
    await red.getByText('supervisor_planner: missing in red.').waitFor()
    await red.getByRole('link', { name: 'research_agent, red' }).click()
    await versionsOf(page, 'red').waitFor()
    assert.deepEqual(troubles, [])
  })

  test('a viewer reads everything and is offered no change', async (t) => {
    const viewer = await kit.invite('viewer')
    await save('seen', 'blue', 'One.')
    await save('seen', 'blue', 'Two.')
    const { page, troubles } = await kit.open(t, '/prompts?prompt=seen', viewer)
    await versionsOf(page, 'blue').getByRole('button', { name: 'Changes in version 2' }).click()
    await compared(page, 'Version 1', 'Version 2').waitFor()
    for (const name of [/^Edit/, 'New prompt', 'New variant', 'Delete', /Roll back/]) {
      assert.equal(await page.getByRole('button', { name }).count(), 0, String(name))
    }
    await kit.goTo(page, '/prompts?prompt=unknown')
    await page.getByText('There is no prompt with the name unknown.').waitFor()
    await kit.goTo(page, '/prompts?prompt=seen&variant=unknown')
    await page.getByText('seen has no variant unknown.').waitFor()
    assert.deepEqual(troubles, [])
  })

  test('axe finds nothing on the prompts, dark and light, on a desktop and on a phone', async (t) => {
    await save('looks', 'blue', 'One.\nTwo.\nThree.')
    await save('looks', 'blue', 'One.\n2.\nThree.')
    const { page, troubles } = await kit.open(t, '/prompts')
    await kit.checkLooks(page, '/prompts', () => page.getByRole('region', { name: 'System green' }).waitFor())
    await kit.checkLooks(page, '/prompts?prompt=hitl_escalation_handler', () =>
      compared(page, 'blue', 'green').waitFor(),
    )
    await kit.checkLooks(page, '/prompts?prompt=looks&with=-', async () => {
      await versionsOf(page, 'blue').getByRole('button', { name: 'Changes in version 2' }).click()
      await compared(page, 'Version 1', 'Version 2').waitFor()
    })
    await kit.checkLooks(page, '/prompts?prompt=looks', async () => {
      await page.getByRole('button', { name: 'Edit', exact: true }).click()
      await page.getByRole('dialog').getByLabel('Text of message 1').fill('Other.')
      await compared(page, 'Before', 'After').waitFor()
    })
    assert.deepEqual(troubles, [])
  })
})
