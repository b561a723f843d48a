// The pages of flows in a real browser, against a real server whose agents answer when the test lets them.
import assert from 'node:assert/strict'
import { before, describe } from 'node:test'
import type { Page } from 'playwright-core'
import type { Flow } from '../../src/flows/definition/flows.ts'
import type { FlowTopology } from '../../src/flows/history/topology.ts'
import type { Alert } from '../../src/kernel/alert.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, untilCount } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
/** An update that is shown later than this is not live; the median of several updates counts. */
const LIVE_WITHIN_MS = 1_000

let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

describe('the pages of flows in a browser', { skip }, () => {
  inSystem('a flow is started from the list with input, workers and timeout, and its page opens', async (t) => {
    const flow = await storeFlow('Watering', { type: 'sequential', steps: [echo('first'), echo('second')] })
    const { page, troubles } = await kit.open(t, '/flows')
    await page.getByRole('heading', { name: 'Flows', level: 1 }).waitFor()
    await page.getByRole('button', { name: 'Start flow' }).click()
    const dialog = page.getByRole('dialog', { name: 'Start flow' })
    await dialog.getByRole('combobox', { name: 'Flow' }).click()
    await page.getByRole('option', { name: 'Watering' }).click()
    await dialog.getByLabel('Input').fill('{')
    await dialog.getByText(/^Line 1, column 2: The text ends too early/).waitFor()
    assert.ok(await dialog.getByRole('button', { name: 'Start flow' }).isDisabled())
    await dialog.getByLabel('Input').fill('{"bed": "roses"}')
    await dialog.getByLabel('Workers').fill('3')
    await dialog.getByLabel('Timeout').fill('90')
    await dialog.getByRole('button', { name: 'Start flow' }).click()
    await page.getByRole('heading', { name: 'Watering', level: 1 }).waitFor()
    const id = new URL(page.url()).pathname.split('/').at(-1) ?? ''
    const run = await ended(id)
    assert.deepEqual([run.flow_id, run.input, run.workers, run.timeout], [flow.id, { bed: 'roses' }, 3, 90_000])
    await page.getByText('completed').first().waitFor()
    await page.locator('[data-task="second"][data-status="completed"]').waitFor()
    await page.getByRole('complementary', { name: 'Details' }).getByText('Output').waitFor()

    await page.getByRole('link', { name: 'Run again' }).click()
    const again = page.getByRole('dialog', { name: 'Run again' })
    assert.deepEqual(JSON.parse(await again.getByLabel('Input').inputValue()), { bed: 'roses' })
    assert.equal(await again.getByLabel('Workers').inputValue(), '3')
    assert.equal(await again.getByLabel('Timeout').inputValue(), '90')
    await again.getByLabel('Input').fill('tulips')
    await again.getByRole('button', { name: 'Start flow' }).click()
    await page.getByRole('heading', { name: 'Watering', level: 1 }).waitFor()
    const second = await ended(new URL(page.url()).pathname.split('/').at(-1) ?? '')
    assert.deepEqual([second.flow_id, second.input], [flow.id, 'tulips'])
    assert.deepEqual(troubles, [])
  })

  test('Flow execution dashboard: a flow under way is followed in the list and on its page within a second', async (t) => {
    const gates = Array.from({ length: 5 }, (_, place) => `live ${place}`)
    hold(t, ...gates)
    const run = await startRun({ root: inTurn(gates) })
    const list = await kit.open(t, '/flows')
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    const row = list.page.locator(`[data-run="${run.id}"]`)
    await row.getByText('running').first().waitFor()
    await page.locator('[data-task="task_0"][data-status="running"]').waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await noteShown(page)
    for (const [place, gate] of gates.slice(0, -1).entries()) {
      await until(async () => kit.model.held(gate) === 1, `task ${place} waits for the model`)
      kit.model.release(gate)
      await page.locator(`[data-task="task_${place}"][data-status="completed"]`).waitFor()
      await row.getByText(`${place + 1} of 5`).waitFor()
    }
    const { items } = await kit.api<{ items: { id: string; end_at: string }[] }>(
      `GET ${kit.path}/flow-runs/${run.id}/tasks`,
    )
    const shown = await page.evaluate<Record<string, number>>('window.shownAt')
    const delays = gates.slice(0, -1).map((_, place) => {
      const at = items.find(({ id }) => id === `task_${place}`)?.end_at ?? ''
      return (shown[`task_${place}`] ?? Number.POSITIVE_INFINITY) - Date.parse(at)
    })
    assert.ok((delays.toSorted((a, b) => a - b)[2] ?? 0) < LIVE_WITHIN_MS, `the page took ${delays} ms`)
    assert.equal(await row.getByRole('progressbar').getAttribute('aria-valuenow'), '80')
    await page.locator('[data-count="completed"]').getByText('4', { exact: true }).waitFor()
    await page.getByText('80% done').waitFor()
    kit.model.release(gates.at(-1) ?? '')
    await page.getByText('The flow run is completed.').waitFor()
    await row.getByText('completed').first().waitFor()
    assert.deepEqual([...list.troubles, ...troubles], [])
  })

  inSystem('a flow run of a halted project claims no work under way until the halt is lifted', async (t) => {
    const gates = ['halt 0', 'halt 1']
    hold(t, ...gates)
    const run = await startRun({ root: inTurn(gates) })
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.locator('[data-task="task_0"][data-status="running"]').waitFor()
    await kit.api(`POST ${kit.path}/halt`, {})
    await page.reload()
    const banner = page.getByRole('status', { name: 'Halt' })
    await banner.getByText('This project is halted: no new step begins in it.').waitFor()
    await page.getByText('The flow run is halted.').waitFor()
    assert.equal(await page.getByText('Live', { exact: true }).count(), 0)
    assert.equal(await page.getByText(/workers busy|not known yet|any moment/).count(), 0)
    await kit.goTo(page, '/agents')
    await banner.waitFor()
    const other = await kit.open(t, '/runs', await kit.invite('member'))
    await other.page.getByRole('status', { name: 'Halt' }).waitFor()
    assert.equal(await other.page.getByRole('button', { name: 'Unhalt project' }).count(), 0)
    await kit.goTo(page, `/flows/${run.id}`)
    await banner.getByRole('button', { name: 'Unhalt project' }).click()
    await page.getByText('The flow run is running.').waitFor()
    await banner.waitFor({ state: 'detached' })
    for (const gate of gates) kit.model.release(gate)
    await page.getByText('The flow run is completed.').waitFor()
    assert.deepEqual([...troubles, ...other.troubles], [])
  })

  inSystem('the list is filtered in the address, and templates start with their example', async (t) => {
    const flow = await storeFlow('Raking', { type: 'sequential', steps: [echo('only')] })
    await ended((await startRun({ flow_id: flow.id })).id)
    const { page, troubles } = await kit.open(t, `/flows?flow=${flow.id}`)
    const table = page.getByRole('table', { name: 'Flow runs' })
    await table.getByRole('link', { name: 'Raking' }).waitFor()
    await untilCount(table.locator('[data-run]'), 1)
    await page.getByRole('combobox', { name: 'Status' }).click()
    await page.getByRole('option', { name: 'timed_out' }).click()
    await page.getByText('No flow run matches.').waitFor()
    assert.equal(new URL(page.url()).searchParams.get('status'), 'timed_out')
    assert.match((await page.getByRole('link', { name: 'New flow' }).getAttribute('href')) ?? '', /\/flows\/new$/)
    assert.match(
      (await page.getByRole('link', { name: 'Raking' }).getAttribute('href')) ?? '',
      new RegExp(`/flows/definitions/${flow.id}$`),
    )
    await page.getByRole('button', { name: 'Start Swarm test' }).click()
    const dialog = page.getByRole('dialog', { name: 'Start flow' })
    const example: unknown = JSON.parse(await dialog.getByLabel('Input').inputValue())
    await dialog.getByRole('button', { name: 'Start flow' }).click()
    await page.getByRole('complementary', { name: 'Details' }).waitFor()
    const id = new URL(page.url()).pathname.split('/').at(-1) ?? ''
    assert.deepEqual((await readRun(id)).input, example)
    assert.deepEqual(troubles, [])
  })

  inSystem('twenty flow runs under way are live in the list', async (t) => {
    const gates = Array.from({ length: 20 }, (_, place) => `many ${place}`)
    hold(t, ...gates)
    const { page, troubles } = await kit.open(t, '/flows')
    const runs: FlowRun[] = []
    for (const gate of gates) runs.push(await startRun({ root: inTurn([`free ${gate}`, gate]) }))
    for (const { id } of runs) await page.locator(`[data-run="${id}"]`).getByText('1 of 2').waitFor()
    const watched = page.locator(`[data-run="${runs[7]?.id}"]`)
    // The page scrolls to the row before the pointer is there.
    await watched.hover()
    const placeBefore = await watched.boundingBox()
    const late = await startRun({ root: { type: 'sequential', steps: [echo('late')] } })
    for (const gate of gates) kit.model.release(gate)
    for (const { id } of runs) await page.locator(`[data-run="${id}"][data-status="completed"]`).waitFor()
    await page.locator(`[data-run="${late.id}"]`).waitFor()
    assert.deepEqual(await watched.boundingBox(), placeBefore, 'a row moved under the pointer')
    assert.deepEqual(troubles, [])
  })

  inSystem('every view shows the tasks, is in the address, and a chosen task leads to its run', async (t) => {
    const branches = [leaf('north', 'views'), leaf('south', 'views')]
    const run = await startRun({ root: { type: 'sequential', steps: [echo('plan'), { type: 'parallel', branches }] } })
    await ended(run.id)
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    const view = async (name: string): Promise<void> => {
      await page.getByRole('tab', { name }).click()
      await until(
        async () => new URL(page.url()).searchParams.get('view') === name.toLowerCase(),
        `the address has ${name}`,
      )
    }
    await view('Split')
    await page.getByRole('list', { name: 'Timeline' }).getByRole('button', { name: /north/ }).waitFor()
    await page.locator('.react-flow__node [data-task="north"]').waitFor()
    await view('Graph')
    await page.locator('.react-flow__node [data-task="south"]').click()
    const aside = page.getByRole('complementary', { name: 'Details' })
    await aside.getByRole('heading', { name: /Gardener|south/ }).waitFor()
    assert.equal(new URL(page.url()).searchParams.get('task'), 'south')
    assert.ok((await page.locator('[data-critical]').count()) >= 2)
    await untilCount(page.locator('.react-flow__edge'), 2)
    await view('Tasks')
    const table = page.getByRole('table', { name: 'Tasks' })
    await untilCount(table.locator('[data-task]'), 3)
    await page.getByLabel('Find a task').fill('nor')
    await page.getByText('1 found').waitFor()
    await table.locator('[data-task="north"]').getByRole('button').click()
    await aside.getByText('Waited for (1)').waitFor()
    await aside
      .locator('section', { hasText: /^Output/ })
      .getByText('Done it.', { exact: true })
      .waitFor()
    await page.reload()
    await aside.getByText('Waited for (1)').waitFor()
    await aside.getByRole('link', { name: 'Open its run' }).click()
    await page.getByRole('heading', { name: 'Gardener', level: 1 }).waitFor()
    const belonging = page.getByRole('region', { name: 'Belongs to' })
    const agentPlace = await belonging.getByRole('link', { name: 'Gardener' }).getAttribute('href')
    assert.ok(agentPlace?.endsWith(`/agents/${kit.agent.id}`), `the agent leads to ${agentPlace}`)
    await belonging.getByRole('link', { name: `Part of the flow run ${run.id.slice(0, 8)}` }).click()
    await aside.getByText('Waited for (1)').waitFor()
    assert.equal(new URL(page.url()).searchParams.get('task'), 'north')
    await page.goBack()
    await page.goBack()
    await page
      .locator('[data-task="north"]')
      .getByRole('link', { name: /^Run of/ })
      .click()
    await page.getByRole('list', { name: 'Transcript' }).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('workers are added, the timeout is changed, and Cancel asks once and ends the flow run', async (t) => {
    hold(t, 'drain')
    const run = await startRun({ root: inTurn(['free', 'drain', 'drain']), workers: 2 })
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    await page.locator('[data-task="task_1"][data-status="running"]').waitFor()
    await page.getByRole('button', { name: 'Add workers' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Workers').fill('3')
    await dialog.getByRole('button', { name: 'Add workers' }).click()
    await page.getByText('The flow run has 5 workers.').waitFor()
    await page.getByRole('button', { name: 'Timeout' }).click()
    await dialog.getByLabel('Timeout').fill('1200')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('timeout 20m 0s').waitFor()
    const { workers, timeout } = await readRun(run.id)
    assert.deepEqual([workers, timeout], [5, 1_200_000])
    await page.getByRole('button', { name: 'Cancel' }).click()
    await dialog.getByRole('button', { name: 'Keep it running' }).click()
    assert.equal((await readRun(run.id)).cancel_requested_at, null)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await dialog.getByRole('button', { name: 'Cancel the flow' }).click()
    await page.getByText('The flow run is cancelling.').waitFor()
    assert.equal(await page.getByRole('button', { name: /^(Cancel|Add workers|Timeout)$/ }).count(), 0)
    kit.model.release('drain')
    await page.getByText('The flow run is cancelled.').waitFor()
    await page.getByRole('region', { name: 'Reason' }).getByText('It was cancelled.').waitFor()
    await page.getByText('Results (2)').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('an alert is shown with its cause and is acted upon', async (t) => {
    const flow = await storeFlow('Nightly', inTurn(['slow']))
    for (let round = 0; round < 3; round++) await ended((await startRun({ flow_id: flow.id })).id)
    hold(t, 'slow')
    const run = await startRun({ flow_id: flow.id, workers: 2 })
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    const alert = page.getByRole('region', { name: 'Alert' })
    await alert.getByText('Slower than expected.').waitFor()
    const { items } = await kit.api<{ items: Alert[] }>(`GET ${kit.path}/alerts?flow_run_id=${run.id}`)
    await alert.getByText(items[0]?.suspected_cause ?? 'nothing').waitFor()
    await alert.getByRole('button', { name: 'Show bottleneck' }).click()
    assert.equal(new URL(page.url()).searchParams.get('task'), 'task_0')
    if (items[0]?.adjust) {
      await alert.getByRole('button', { name: /^Adjust to / }).click()
      await page.getByText('The flow run is adjusted.').waitFor()
    }
    await alert.getByRole('button', { name: 'More workers…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Add workers' }).click()
    await page.getByText(/^The flow run has \d+ workers\.$/).waitFor()
    await alert.getByRole('button', { name: 'Acknowledge' }).click()
    await page.locator(`[data-alert="${items[0]?.id}"]`).waitFor({ state: 'detached' })
    assert.deepEqual(troubles, [])
  })

  inSystem('the topology of an adaptive flow is switched on its page', async (t) => {
    hold(t, 'topology')
    const tasks = Array.from({ length: 4 }, (_, place) => leaf(`part_${place}`, 'topology'))
    const run = await startRun({ root: { type: 'adaptive', topology: 'star', workers: 2, tasks } })
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    await page.getByRole('button', { name: 'Switch topology' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('combobox', { name: 'Topology' }).click()
    await page.getByRole('option', { name: 'mesh' }).click()
    await dialog.getByRole('button', { name: 'Switch topology' }).click()
    await page.getByText('The topology is mesh.').waitFor()
    await page
      .getByRole('list', { name: 'Switches of the topology' })
      .getByText(/star → mesh/)
      .waitFor()
    const { current } = await kit.api<FlowTopology>(`GET ${kit.path}/flow-runs/${run.id}/topology`)
    assert.equal(current, 'mesh')
    kit.model.release('topology')
    await ended(run.id)
    await page.getByRole('button', { name: 'Switch topology' }).waitFor({ state: 'detached' })
    assert.deepEqual(troubles, [])
  })

  inSystem('a failed flow shows its reason first, the task that failed, and the trace in four formats', async (t) => {
    const root = { type: 'sequential', steps: [echo('fine'), { ...echo('broken'), function: 'muster.chunk', args: 3 }] }
    const run = await ended((await startRun({ root })).id)
    assert.equal(run.status, 'failed')
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    const reason = page.getByRole('region', { name: 'Reason' })
    await reason.getByText(run.error ?? 'no error').waitFor()
    await reason.getByRole('button', { name: /^Show / }).click()
    await page.getByRole('complementary', { name: 'Details' }).getByText('Error').waitFor()
    await page.getByRole('button', { name: 'Export' }).click()
    for (const name of ['JSON', 'Chrome trace', 'OTLP', 'CSV']) {
      const href = await page.getByRole('menuitem', { name, exact: true }).getAttribute('href')
      const answer = await kit.muster.call(`GET ${href}`, { token: null, cookie: kit.cookie })
      assert.equal(answer.status, 200, name)
    }
    assert.deepEqual(troubles, [])
  })

  inSystem('five thousand tasks stay usable: few rows exist, and a status filters them', async (t) => {
    const branches = Array.from({ length: 5_000 }, (_, place) => ({
      ...echo(`t_${place}`),
      ...(place === 4_700 ? { function: 'muster.chunk', args: {} } : {}),
    }))
    const { id } = await startRun({ root: { type: 'parallel', branches } })
    await until(async () => (await readRun(id)).completed_at !== null, 'the flow run has ended', 90_000)
    const { page, troubles } = await kit.open(t, `/flows/${id}?view=tasks`)
    await page.locator('[data-task="t_0"]').waitFor()
    await page.getByText('5000 tasks').waitFor()
    assert.ok((await page.locator('[data-task]').count()) < 100)
    await page.evaluate(`document.querySelector('table').parentElement.scrollTo(0, 1_000_000)`)
    await page.locator('[data-task="t_4999"]').waitFor()
    await page.getByRole('button', { name: /failed 1/ }).click()
    await page.locator('[data-task="t_4700"][data-status="failed"]').waitFor()
    await untilCount(page.locator('[data-task]'), 1)
    assert.equal(new URL(page.url()).searchParams.get('status'), 'failed')
    await page.getByRole('tab', { name: 'Graph' }).click()
    await page.getByRole('button', { name: /^Open 5000 tasks .*1 failed, 4999 completed/ }).waitFor()
    await page.getByRole('tab', { name: 'Timeline' }).click()
    await page.locator('[data-task="t_4700"]').waitFor()
    await page.getByRole('button', { name: /failed 1/ }).click()
    await page.locator('[data-task="t_0"]').waitFor()
    assert.ok((await page.locator('[data-task]').count()) < 100)
    assert.deepEqual(troubles, [])
  })

  inSystem('Following turns off when somebody scrolls, and on again by its button', async (t) => {
    const gates = Array.from({ length: 2 }, (_, place) => `scroll ${place}`)
    hold(t, ...gates)
    const free = Array.from({ length: 60 }, (_, place) => echo(`quick_${place}`))
    const run = await startRun({ root: { type: 'sequential', steps: [...free, ...inTurn(gates).steps] } })
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    await page.locator('[data-task="task_0"][data-status="running"]').waitFor()
    const following = page.getByRole('button', { name: 'Following' })
    assert.equal(await following.getAttribute('aria-pressed'), 'true')
    await page.getByRole('list', { name: 'Timeline' }).hover()
    await page.mouse.wheel(0, -5_000)
    await page.locator('[data-task="quick_0"]').waitFor()
    await until(async () => (await following.getAttribute('aria-pressed')) === 'false', 'Following is off')
    kit.model.release(gates[0] ?? '')
    await page.locator('[data-count="completed"]').getByText('61', { exact: true }).waitFor()
    await page.locator('[data-task="quick_0"]').waitFor()
    await following.click()
    await page.locator('[data-task="task_1"][data-status="running"]').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('the plan of a queen stands beside the tasks', async (t) => {
    const model = { provider: 'offline', name: 'offline' }
    for (const name of ['Queen', 'Worker']) await kit.api(`POST ${kit.path}/agents`, { name, prompt: 'Work.', model })
    const goal = '1. Draft a text about tea.\n2. Proofread the text.'
    const { id } = await startRun({ root: { type: 'hierarchical', queen: 'Queen', workers: ['Worker'], goal } })
    const { page, troubles } = await kit.open(t, `/flows/${id}`)
    await page.getByRole('list', { name: "Queen's plan" }).getByRole('listitem').first().waitFor()
    await page.getByRole('list', { name: "Queen's plan" }).getByRole('button').first().click()
    await page.getByRole('complementary', { name: 'Details' }).getByText('Attempts').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('tasks that a flow run expects and that are not listed yet are pending in its bar', async (t) => {
    hold(t, 'expected')
    const map = {
      type: 'task',
      agent: 'Gardener',
      input: { tag: 'map', steps: [{ say: 'Done it.', gate: 'expected' }] },
    }
    const root = { type: 'map_reduce', items: [1, 2], workers: 2, map, reduce: 'muster.identity' }
    const run = await startRun({ root, workers: 1 })
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    await page.locator('[data-task][data-status="running"]').waitFor()
    const { progress } = await readRun(run.id)
    const { tasks } = await kit.api<{ tasks: unknown[] }>(`GET ${kit.path}/flow-runs/${run.id}/trace`)
    assert.ok(tasks.length < progress.total, 'every task is listed')
    const pending = page.locator('[data-count="pending"]')
    await pending.getByText(String(progress.pending), { exact: true }).waitFor()
    await pending.click()
    await page.getByText(/pending tasks? (is|are) not in the list yet/).waitFor()
    kit.model.release('expected')
    await page.getByText('The flow run is completed.').waitFor()
    await pending.getByText('0', { exact: true }).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('names of flows and results are shown literally', async (t) => {
    const evil = `<img src="http://evil.invalid/a.png" onerror="alert(1)"><script>alert(2)</script>`
    const flow = await storeFlow(`F ${evil}`, { type: 'sequential', steps: [{ ...echo('said'), args: evil }] })
    const run = await startRun({ flow_id: flow.id, input: { [evil]: evil } })
    await ended(run.id)
    const { page, troubles } = await kit.open(t, '/flows')
    await page
      .getByRole('table')
      .getByRole('link', { name: `F ${evil}` })
      .click()
    await page.getByRole('heading', { name: `F ${evil}`, level: 1 }).waitFor()
    await page.getByText('Results (1)').waitFor()
    assert.equal(await page.locator('main').locator('img, script, iframe').count(), 0)
    assert.deepEqual(troubles, [])
  })

  inSystem('a viewer sees the flows and no button that changes anything; an unknown run says so', async (t) => {
    hold(t, 'viewer')
    const run = await startRun({ root: inTurn(['viewer', 'viewer']) })
    const { page, troubles } = await kit.open(t, '/flows', await kit.invite('viewer'))
    await page.locator(`[data-run="${run.id}"]`).getByText('running').first().waitFor()
    assert.equal(await page.getByRole('button', { name: /Start/ }).count(), 0)
    assert.equal(await page.getByRole('link', { name: 'New flow' }).count(), 0)
    await page.locator(`[data-run="${run.id}"]`).getByRole('link').click()
    await page.locator('[data-task="task_0"][data-status="running"]').waitFor()
    assert.equal(await page.getByRole('button', { name: /^(Cancel|Add workers|Timeout|Switch topology)$/ }).count(), 0)
    await kit.goTo(page, `/flows/${kit.agent.id}`)
    await page.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem(
    'axe finds nothing on the list and on every view, dark and light, on a desktop and on a phone',
    async (t) => {
      const branches = [leaf('north', 'axe'), echo('south'), { ...echo('bad'), function: 'muster.chunk', args: 3 }]
      const run = await startRun({ root: { type: 'parallel', branches }, input: 'Look.' })
      await ended(run.id)
      const { page, troubles } = await kit.open(t, '/flows')
      await kit.checkLooks(page, '/flows', () => page.locator(`[data-run="${run.id}"]`).waitFor())
      for (const view of ['split', 'tasks']) {
        await kit.checkLooks(page, `/flows/${run.id}?view=${view}&task=bad`, async () => {
          await page
            .getByText(/completed/)
            .first()
            .waitFor()
          await page.locator('[data-task="bad"]').first().waitFor()
          if (view === 'split') await page.locator('.react-flow__node').first().waitFor()
        })
      }
      assert.deepEqual(troubles, [])
    },
  )
})

const echo = (id: string) => ({ type: 'task', id, function: 'muster.identity', args: id })

const leaf = (id: string, gate: string) => ({
  type: 'task',
  id,
  agent: 'Gardener',
  input: { tag: id, steps: [{ say: 'Done it.', gate }] },
})

/** Steps one after the other; each waits for its gate. */
const inTurn = (gates: string[]) => ({
  type: 'sequential',
  steps: gates.map((gate, place) => leaf(`task_${place}`, gate)),
})

const storeFlow = (name: string, root: object): Promise<Flow> => kit.api<Flow>(`POST ${kit.path}/flows`, { name, root })

const startRun = (body: object): Promise<FlowRun> => kit.api<FlowRun>(`POST ${kit.path}/flow-runs`, body)

const readRun = (id: string): Promise<FlowRun> => kit.api<FlowRun>(`GET ${kit.path}/flow-runs/${id}`)

async function ended(id: string): Promise<FlowRun> {
  await until(async () => (await readRun(id)).completed_at !== null, 'the flow run has ended')
  return readRun(id)
}

function hold(t: { after(clean: () => Promise<void>): void }, ...gates: string[]): void {
  for (const gate of gates) kit.model.hold(gate)
  t.after(async () => {
    for (const gate of gates) kit.model.release(gate)
  })
}

/** Makes the page note the time at which each row is first completed. */
const noteShown = (page: Page): Promise<unknown> =>
  page.evaluate(
    `{
      window.shownAt = {}
      new MutationObserver((changes) => {
        for (const { target } of changes)
          if (target.dataset.status === 'completed') window.shownAt[target.dataset.task] ??= Date.now()
      }).observe(document.body, { subtree: true, attributeFilter: ['data-status'] })
    }`,
  )
