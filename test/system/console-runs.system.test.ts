// The list of runs in a browser: its filters, which the address keeps.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Agent } from '../../src/kernel/agent.ts'
import type { Run } from '../../src/kernel/run.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, untilCount } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit
let clerk: Agent

before(async () => {
  if (skip) return
  kit = await startConsole({ after: atEnd })
  clerk = await kit.api<Agent>(`POST ${kit.path}/agents`, { name: 'Clerk', prompt: 'Count.', tools: ['spawn_agent'] })
  for (const input of ['Prune the roses', 'Water the lawn', 'Prune the hedge']) {
    await kit.api<Run>(`POST ${kit.path}/agents/${clerk.id}/trigger`, { input })
  }
  const spawn = { name: 'spawn_agent', args: { agent: 'Clerk', input: 'Prune as a sub-run' } }
  const senior = await kit.api<Agent>(`POST ${kit.path}/agents`, {
    name: 'Senior',
    prompt: 'Spawn.',
    model: { provider: 'planned', name: 'any' },
    tools: ['spawn_agent'],
  })
  const { id } = await kit.trigger(
    { tag: 'parent', steps: [{ say: 'I ask.', calls: [spawn] }, { say: 'done' }] },
    {},
    senior,
  )
  await until(async () => (await kit.readRun(id)).completed_at !== null, 'the run ends')
})

describe('the list of runs in a browser', { skip }, () => {
  test('a text narrows the list, stands in the address, and goes when the list is opened anew', async (t) => {
    const { page, troubles } = await kit.open(t, '/runs')
    const rows = page.locator('tbody').getByRole('row')
    await untilCount(rows, 5)
    await page.getByRole('searchbox', { name: 'Find' }).fill('prune')
    await untilCount(rows, 4)
    await page.waitForURL('**/runs?q=prune')
    await page.reload()
    assert.equal(await page.getByRole('searchbox', { name: 'Find' }).inputValue(), 'prune')
    await page.getByRole('searchbox', { name: 'Find' }).fill('clerk')
    await untilCount(rows, 5)
    await page.getByRole('searchbox', { name: 'Find' }).fill('the lawn')
    await untilCount(rows, 1)
    await page.getByRole('searchbox', { name: 'Find' }).fill('nothing has this')
    await page.getByText('No run matches.').waitFor()
    await page.getByRole('link', { name: 'Runs', exact: true }).click()
    await untilCount(rows, 5)
    assert.equal(await page.getByRole('searchbox', { name: 'Find' }).inputValue(), '')
    assert.deepEqual(troubles, [])
  })

  test('a period and the origin narrow the list, and are kept in the address', async (t) => {
    const { page, troubles } = await kit.open(t, '/runs')
    const rows = page.locator('tbody').getByRole('row')
    await untilCount(rows, 5)
    await page.getByRole('checkbox', { name: 'Only started by people or triggers' }).check()
    await untilCount(rows, 4)
    await page.getByRole('combobox', { name: 'Period' }).click()
    await page.getByRole('option', { name: 'Last hour' }).click()
    await page.waitForURL('**/runs?*period=hour*')
    await untilCount(rows, 4)
    await page.reload()
    await untilCount(rows, 4)
    assert.equal(await page.getByRole('combobox', { name: 'Period' }).inputValue(), 'Last hour')
    assert.ok(await page.getByRole('checkbox', { name: 'Only started by people or triggers' }).isChecked())
    await page.getByRole('combobox', { name: 'Agent' }).fill('Clerk')
    await page.getByRole('option', { name: 'Clerk', exact: true }).click()
    await untilCount(rows, 4)
    assert.ok(await page.getByRole('checkbox', { name: 'Only started by people or triggers' }).isDisabled())
    assert.deepEqual(troubles, [])
  })

  test('the filters are fit for everybody, in dark and light, on a desktop and a phone', async (t) => {
    const { page } = await kit.open(t, '/runs')
    await kit.checkLooks(page, '/runs?q=prune&subruns=hidden&period=day', (shown) =>
      untilCount(shown.locator('tbody').getByRole('row'), 3),
    )
  })
})
