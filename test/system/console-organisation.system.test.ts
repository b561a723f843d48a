// The organisation in a real browser: the tree, an agent's panel, its tasks, messages and budget.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Agent } from '../../src/kernel/agent.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { serveLocally } from '../kit/local-server.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
const OFFLINE = { provider: 'offline', name: 'offline' }
let kit: ConsoleKit
let director: Agent
let scout: Agent

before(async () => {
  if (skip) return
  kit = await startConsole({ after: atEnd })
  await kit.api(`PATCH ${kit.path}/settings`, { stuck_retry_limit: 0, poll_interval: 500 })
  director = await make('Director', { role: 'leads the garden' })
  scout = await make('Scout', { senior_id: director.id, competencies: ['search'], token_allocation: 100_000 })
  await make('Clerk', { senior_id: director.id, competencies: ['writing'] })
})

describe('the organisation in a browser', { skip }, () => {
  test('an agent is chosen in the tree, is given a task, works on it, and its attempt leads to the run', async (t) => {
    const { page, troubles } = await kit.open(t, '/organisation')
    await page.getByRole('heading', { name: 'Organisation', level: 1 }).waitFor()
    const health = page.getByRole('region', { name: 'Health' })
    await health.getByText('Take up tasks').waitFor()
    await agentRow(page, 'Scout').click()
    await page.getByRole('heading', { name: 'Scout', level: 2 }).waitFor()
    assert.equal(new URL(page.url()).searchParams.get('agent'), scout.id)

    await page.getByRole('button', { name: 'New task' }).click()
    const dialog = page.getByRole('dialog', { name: 'New task' })
    await dialog.getByLabel('Title').fill('Count the roses')
    await dialog.getByLabel('Description').fill('All of them.')
    await dialog.getByText('Scout gets it.').waitFor()
    await dialog.getByRole('button', { name: 'Save' }).click()
    const drawer = page.getByRole('dialog', { name: 'Count the roses' })
    await drawer.getByText('All of them.', { exact: true }).waitFor()
    const task = await taskCalled('Count the roses')
    assert.equal(task.assigned_to, scout.id)
    await until(async () => (await readTask(task.id)).status === 'completed', 'the task is done')
    await page.reload()
    await drawer.getByText('completed').first().waitFor()
    await drawer.getByRole('link', { name: 'Attempt 1' }).click()
    await page.getByRole('heading', { name: 'Scout', level: 1 }).waitFor()
    assert.ok(page.url().includes('/runs/'), page.url())
    assert.deepEqual(troubles, [])
  })

  test('the result of a task is read as text and as names with values, and its JSON is one click away', async (t) => {
    const { id } = await kit.api<Task>(`POST ${kit.path}/tasks`, { title: 'Report on the beds', assigned_to: scout.id })
    await until(async () => (await readTask(id)).status === 'completed', 'the task is done')
    const { page, troubles } = await kit.open(t, '/organisation')
    const result = { summary: 'There are **twelve** beds.', by_colour: { red: 7, white: 5 }, notes: ['Dry.', 'Sunny.'] }
    await page.route(`**/tasks/${id}`, async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), result } })
    })
    await kit.goTo(page, `/organisation?task=${id}`)
    const section = page.getByRole('dialog').getByRole('region', { name: 'Result' })
    await section.locator('strong', { hasText: 'twelve' }).waitFor()
    await section.getByText('by colour').waitFor()
    await section.getByRole('definition').getByText('7', { exact: true }).waitFor()
    await section.getByRole('listitem').getByText('Sunny.').waitFor()
    assert.equal(await section.getByText(/[{"]/).count(), 0)
    await section.getByRole('button', { name: 'Show the JSON' }).click()
    await section.getByText('"by_colour": {').waitFor()
    await section.getByRole('button', { name: 'Show as text' }).click()
    await section.locator('strong', { hasText: 'twelve' }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('Stop, Start and Restart of one agent, and of all', async (t) => {
    const { page, troubles } = await kit.open(t, `/organisation?agent=${scout.id}`)
    const panel = page.getByRole('region', { name: 'Scout', exact: true })
    await panel.getByRole('button', { name: 'Stop' }).click()
    await panel.getByText('Somebody stopped it.').waitFor()
    assert.equal((await readAgent(scout.id)).paused_for, 'stopped')
    await panel.getByRole('button', { name: 'Start', exact: true }).click()
    await panel.getByText('active', { exact: true }).waitFor()
    await panel.getByRole('button', { name: 'Restart' }).click()
    await page.getByText('Scout is restarted.').waitFor()
    await panel.getByRole('button', { name: 'Whole organisation' }).click()
    const whole = page.getByRole('region', { name: 'Whole organisation' })
    await whole.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
    await page.getByText('All agents are stopped.').waitFor()
    assert.equal((await readAgent(director.id)).status, 'paused')
    await whole.getByRole('button', { name: 'Start', exact: true }).click()
    await page.getByText('All agents that have tokens are started.').waitFor()
    assert.equal((await readAgent(director.id)).status, 'active')
    assert.deepEqual(troubles, [])
  })

  test('a budget bar tells how much is used, and Top up gives more', async (t) => {
    const pauper = await make('Pauper', { token_allocation: 10 })
    await kit.api(`POST ${kit.path}/tasks`, { title: 'Spend', assigned_to: pauper.id })
    await until(async () => (await readAgent(pauper.id)).paused_for === 'budget', 'its tokens are used up')
    const { page, troubles } = await kit.open(t, `/organisation?agent=${pauper.id}`)
    const panel = page.getByRole('region', { name: 'Pauper' })
    await panel.getByText('Its tokens are used up.').waitFor()
    await panel.getByText(/of 10 tokens, 100 %/).waitFor()
    await panel.getByLabel('Tokens to add').fill('50000')
    await panel.getByRole('button', { name: 'Top up' }).click()
    await panel.getByText(/of 50.0k tokens/).waitFor()
    assert.equal((await readAgent(pauper.id)).token_allocation, 50_010)
    assert.deepEqual(troubles, [])
  })

  test('a task given by competency goes to the agent that has it, and its report is read', async (t) => {
    const { page, troubles } = await kit.open(t, '/organisation')
    await page.getByRole('button', { name: 'New task' }).click()
    const dialog = page.getByRole('dialog', { name: 'New task' })
    await dialog.getByText('People get it: it appears in the inbox.').waitFor()
    await dialog.getByLabel('Title').fill('Write a letter')
    await dialog.getByRole('combobox', { name: 'Priority' }).click()
    await page.getByRole('option', { name: 'high' }).click()
    await dialog.getByRole('combobox', { name: 'Competency' }).click()
    await page.getByRole('option', { name: 'writing' }).waitFor()
    // Escape closes the list, not the dialog around it.
    await page.keyboard.press('Escape')
    await page.getByRole('option', { name: 'writing' }).waitFor({ state: 'hidden' })
    await dialog.getByRole('combobox', { name: 'Competency' }).click()
    await page.getByRole('option', { name: 'writing' }).click()
    await dialog.getByText(/Clerk gets it: it knows writing/).waitFor()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog', { name: 'Write a letter' }).waitFor()
    const task = await taskCalled('Write a letter')
    assert.deepEqual([task.priority, task.metadata.competencies], ['high', ['writing']])
    await until(async () => (await readTask(task.id)).status === 'completed', 'the letter is written')

    // The director delegates, and the report comes back to it.
    await kit.api(`POST ${kit.path}/agents/${scout.id}/stop`, {})
    await kit.api(`POST ${kit.path}/agents/${scout.id}/start`, {})
    await kit.goTo(page, `/organisation?agent=${director.id}&tab=messages`)
    const messages = page.getByRole('list', { name: 'Messages' })
    await messages.getByText('somebody stopped it.').first().waitFor()
    await page.getByRole('tab', { name: 'Reports' }).click()
    await until(() => new URL(page.url()).searchParams.get('tab') === 'reports', 'the tab is in the address')
    assert.deepEqual(troubles, [])
  })

  test('a task is edited, given to another agent, tried again and cancelled', async (t) => {
    const refusal = await serveLocally({ after: atEnd }, (_request, response) => {
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}')
    })
    await kit.api('POST /api/providers', { name: 'refusing', kind: 'openai-compatible', base_url: refusal })
    const lost = await make('Lost', { model: { provider: 'refusing', name: 'any' } })
    const { id } = await kit.api<Task>(`POST ${kit.path}/tasks`, { title: 'Too hard', assigned_to: lost.id })
    await until(async () => (await readTask(id)).status === 'blocked', 'the task is blocked')
    const { page, troubles } = await kit.open(t, `/organisation?agent=${lost.id}`)
    await page.getByText('A task failed too often.').waitFor()
    await page.getByRole('button', { name: 'Too hard' }).click()
    const drawer = page.getByRole('dialog', { name: /Too hard|Easier/ })
    await drawer.getByRole('button', { name: 'Retry' }).click()
    await page.getByText('The task is tried again.').waitFor()
    await until(async () => (await readTask(id)).status === 'blocked', 'it is blocked again')
    await drawer.getByRole('button', { name: 'Edit' }).click()
    await drawer.getByLabel('Title').fill('Easier')
    await drawer.getByRole('combobox', { name: 'Agent' }).fill('Clerk')
    await page.getByRole('option', { name: 'Clerk' }).click()
    await drawer.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The task is changed.').waitFor()
    await until(async () => (await readTask(id)).status === 'completed', 'another agent does it')

    await kit.api(`POST ${kit.path}/agents/${scout.id}/stop`, {})
    const waiting = await kit.api<Task>(`POST ${kit.path}/tasks`, { title: 'Not now', assigned_to: scout.id })
    await kit.goTo(page, `/organisation?agent=${scout.id}&task=${waiting.id}`)
    const other = page.getByRole('dialog', { name: 'Not now' })
    await other.getByText('Nobody has begun it yet.').waitFor()
    await other.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('dialog', { name: 'Cancel this task?' }).getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('The task is cancelled.').waitFor()
    assert.equal((await readTask(waiting.id)).status, 'cancelled')
    await kit.api(`POST ${kit.path}/agents/${scout.id}/start`, {})
    assert.deepEqual(troubles, [])
  })

  test('the keys of the tree move, fold and choose, and a search finds by competency', async (t) => {
    const { page, troubles } = await kit.open(t, '/organisation')
    await agentRow(page, 'Scout').waitFor()
    await page.getByLabel('Find an agent').fill('search')
    await until(async () => (await agentRow(page, 'Clerk').count()) === 0, 'others are hidden')
    await agentRow(page, 'Director').waitFor()
    await page.getByLabel('Find an agent').fill('')
    await agentRow(page, 'Clerk').waitFor()
    await page.getByRole('tree').focus()
    await page.keyboard.press('Home')
    const rows = page.getByRole('treeitem')
    const first = (await rows.first().getAttribute('id')) ?? ''
    assert.equal(await page.getByRole('tree').getAttribute('aria-activedescendant'), first)
    await page.getByRole('treeitem', { name: /Director/ }).click()
    await page.getByRole('tree').focus()
    await page.keyboard.press('ArrowLeft')
    await until(async () => (await agentRow(page, 'Scout').count()) === 0, 'the director is folded')
    await page.keyboard.press('ArrowRight')
    await agentRow(page, 'Scout').waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Clerk', level: 2 }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('a viewer starts, stops and gives nothing; a member gives tasks', async (t) => {
    const [viewer, member] = [await kit.invite('viewer'), await kit.invite('member')]
    const names = ['New task', 'Start', 'Stop', 'Restart', 'Top up']
    const offered = async (page: Page): Promise<string[]> => {
      await page.getByRole('heading', { name: 'Scout', level: 2 }).waitFor()
      const counts = await Promise.all(names.map((name) => page.getByRole('button', { name, exact: true }).count()))
      return names.filter((_, place) => (counts[place] ?? 0) > 0)
    }
    const { page } = await kit.open(t, `/organisation?agent=${scout.id}`, viewer)
    assert.deepEqual(await offered(page), [])
    const { page: theirs } = await kit.open(t, `/organisation?agent=${scout.id}`, member)
    assert.deepEqual(await offered(theirs), ['New task'])
  })

  test('a thousand agents are drawn by the screenful and found by name', async (t) => {
    const { id } = await kit.api<{ id: string }>('POST /api/projects', { name: 'Large' })
    const path = `/api/projects/${id}`
    const leads = await Promise.all(Array.from({ length: 10 }, (_, n) => make(`Lead ${n}`, {}, path)))
    await Promise.all(
      leads.map(async (lead) => {
        for (let n = 0; n < 99; n++) await make(`${lead.name} worker ${n}`, { senior_id: lead.id }, path)
      }),
    )
    const { page, troubles } = await kit.open(t, '/organisation')
    await page.goto(`${kit.muster.url}/projects/${id}/organisation`)
    await agentRow(page, 'Lead 3').waitFor()
    await page.getByRole('region', { name: 'Health' }).getByText('1000').first().waitFor()
    await until(async () => (await page.getByRole('treeitem').count()) < 120, 'only rows on the screen are drawn')
    await page.getByLabel('Find an agent').fill('Lead 7 worker 98')
    await agentRow(page, 'Lead 7 worker 98').click()
    await page.getByRole('heading', { name: 'Lead 7 worker 98', level: 2 }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('axe finds nothing, dark and light, on a desktop and on a phone', async (t) => {
    const { id } = await kit.api<Task>(`POST ${kit.path}/tasks`, { title: 'Seen by axe', assigned_to: scout.id })
    await until(async () => (await readTask(id)).status === 'completed', 'the task is done')
    const { page } = await kit.open(t, '/organisation')
    await kit.checkLooks(page, '/organisation', () => page.getByText('Seen by axe').first().waitFor())
    const agent = `/organisation?agent=${scout.id}`
    await kit.checkLooks(page, agent, () => page.getByText('Seen by axe').first().waitFor())
    await kit.checkLooks(page, `${agent}&task=${id}`, () => page.getByText('Attempt 1').waitFor())
  })
})

const agentRow = (page: Page, name: string) => page.getByRole('treeitem').filter({ hasText: name })

const make = (name: string, fields: object = {}, path = kit.path): Promise<Agent> =>
  kit.api<Agent>(`POST ${path}/agents`, { name, prompt: 'Do it.', model: OFFLINE, ...fields })

const readAgent = (id: string): Promise<Agent> => kit.api<Agent>(`GET ${kit.path}/agents/${id}`)
const readTask = (id: string): Promise<Task> => kit.api<Task>(`GET ${kit.path}/tasks/${id}`)

async function taskCalled(title: string): Promise<Task> {
  const { items } = await kit.api<{ items: Task[] }>(`GET ${kit.path}/tasks?kind=work`)
  return items.find((task) => task.title === title) ?? assert.fail(`there is no task ${title}`)
}
