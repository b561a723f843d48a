// A project with more agents and runs than one page of a list has.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Agent } from '../../src/kernel/agent.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, untilCount } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'

const skip = noBrowser
const AGENTS = 205
const RUNS = 103
let kit: ConsoleKit

/** Lists begin with the newest, so that the agent of the kit, the oldest, is on none of their first pages. */
before(async () => {
  if (skip) return
  kit = await startConsole({ after: atEnd })
  for (let made = 0; made < AGENTS; made++) {
    await kit.api<Agent>(`POST ${kit.path}/agents`, {
      name: `junior ${made}`,
      prompt: 'Wait.',
      senior_id: kit.agent.id,
    })
  }
  for (let begun = 0; begun < RUNS; begun++) await kit.trigger({ tag: 'many', steps: [{ say: 'done' }] })
})

describe('a large project in a browser', { skip }, () => {
  test('all runs can be reached, name their agent, and open wherever their row is clicked', async (t) => {
    const { page, troubles } = await kit.open(t, '/runs')
    const named = page.getByRole('link', { name: kit.agent.name, exact: true })
    await untilCount(named, 100)
    await page.getByRole('button', { name: 'More' }).click()
    await untilCount(named, RUNS)
    await page.getByRole('row', { name: kit.agent.name }).first().getByRole('cell').nth(4).click()
    await page.getByRole('heading', { name: kit.agent.name, level: 1 }).waitFor()
    assert.match(page.url(), /\/runs\/[0-9a-f-]{36}$/)
    assert.deepEqual(troubles, [])
  })

  test('the oldest agent can be chosen as a filter and as a senior, and lists all its subordinates', async (t) => {
    const { page, troubles } = await kit.open(t, '/runs')
    const filter = page.getByRole('combobox', { name: 'Agent' })
    await filter.fill(kit.agent.name)
    await page.getByRole('option', { name: kit.agent.name, exact: true }).click()
    await page.waitForURL(`**agent=${kit.agent.id}`)
    await kit.goTo(page, '/agents/new')
    await page.getByRole('combobox', { name: 'Senior' }).fill(kit.agent.name)
    await page.getByRole('option', { name: kit.agent.name, exact: true }).click()
    await kit.goTo(page, `/agents/${kit.agent.id}`)
    await untilCount(page.getByRole('link', { name: /^junior \d+$/ }), AGENTS)
    assert.deepEqual(troubles, [])
  })

  test('a field that is typed in stays in view, clear of the buttons, while late answers fill the form', async (t) => {
    const { page, troubles } = await kit.open(t, '/runs')
    const settings = Promise.withResolvers<void>()
    await page.route('**/settings', async (route) => {
      await settings.promise
      await route.continue()
    })
    await kit.goTo(page, '/agents/new')
    const senior = page.getByRole('combobox', { name: 'Senior' })
    await senior.fill(kit.agent.name)
    const isClear = async (): Promise<boolean> => {
      const field = await senior.boundingBox()
      const buttons = await page.getByRole('button', { name: 'Save' }).boundingBox()
      assert.ok(field && buttons)
      return field.y + field.height < buttons.y
    }
    assert.ok(await isClear(), 'the field is above the buttons')
    settings.resolve()
    await page.getByText('The same tool call 3 times').waitFor()
    assert.ok(await isClear(), 'the field stayed there')
    await page.getByRole('option', { name: kit.agent.name, exact: true }).click()
    assert.deepEqual(troubles, [])
  })

  test('home says that there are more agents than it counted', async (t) => {
    const { page } = await kit.open(t, '/runs')
    await page.getByRole('link', { name: 'Home', exact: true }).click()
    await page.getByText('200+ agents').waitFor()
    assert.equal(await page.getByText('Deleted agent').count(), 0)
  })
})
