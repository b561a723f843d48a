// The home page, the frame around every page, and the doors, in a real browser against a real server.
import assert from 'node:assert/strict'
import { before, describe } from 'node:test'
import type { Page } from 'playwright-core'
import type { Agent } from '../../src/kernel/agent.ts'
import type { Home } from '../../src/kernel/home.ts'
import type { Project } from '../../src/kernel/project.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, openPage } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import type { Cleanup } from '../kit/process.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

const MANY_FAILURES = 24
const MANY_PROJECTS = 60
/** The identity, the projects and Home, each once more when the stream of changes is open, and the rail of a page. */
const MOST_REQUESTS = 10
const PHONE = { width: 390, height: 800 }

/** Goes to another page of the console as a link does. */
const goInside = (page: Page, address: string): Promise<unknown> =>
  page.evaluate(`history.pushState(null, '', ${JSON.stringify(address)})`)

async function goHome(page: Page): Promise<void> {
  const nav = page.getByRole('navigation', { name: 'Main' })
  await nav.waitFor()
  const menu = nav.getByRole('button', { name: 'Menu' })
  if (await menu.isVisible()) await menu.click()
  await nav.getByRole('link', { name: 'Home' }).click()
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
}

/** A run that asks, a run and a flow under way, and a run that fails. */
async function makeNews(t: Cleanup): Promise<void> {
  kit.model.hold('home')
  t.after(async () => kit.model.release('home'))
  const asker = await kit.api<Agent>(`POST ${kit.path}/agents`, {
    name: 'Asker',
    prompt: 'Ask first.',
    model: { provider: 'planned', name: 'any' },
    tools: ['ask_human'],
  })
  const question = { name: 'ask_human', args: { question: 'Which bed comes first?' } }
  await kit.trigger({ tag: 'asks', steps: [{ say: 'I ask.', calls: [question] }, { say: 'Thanks.' }] }, {}, asker)
  await kit.trigger({ tag: 'under way', steps: [{ say: 'I dig and dig.', gate: 'home' }] })
  const failing = await kit.trigger({ tag: 'without a plan', steps: [] })
  const leaf = (tag: string, gate?: string) => ({
    type: 'task',
    agent: 'Gardener',
    input: { tag, steps: [{ say: 'Leaf.', ...(gate && { gate }) }] },
  })
  const flow = await kit.api<{ id: string }>(`POST ${kit.path}/flows`, {
    name: 'Spring',
    root: { type: 'sequential', steps: [leaf('leaf one'), leaf('leaf two', 'home')] },
  })
  await kit.api(`POST ${kit.path}/flow-runs`, { flow_id: flow.id })
  await until(async () => (await kit.readRun(failing.id)).status === 'failed', 'the run fails')
  const waiting = async (): Promise<Task[]> =>
    (await kit.api<{ items: Task[] }>(`GET ${kit.path}/tasks?kind=escalation&status=pending`)).items
  await until(async () => (await waiting()).length > 0, 'the question is there')
  await until(async () => kit.model.requestsOf('leaf two').length > 0, 'the flow is at its second leaf')
}

describe('the home page and the frame in a browser', { skip }, () => {
  test('Home shows what waits, what failed, what runs and what today cost, and a project without agents offers the first', async (t) => {
    await makeNews(t)
    const { page, troubles } = await kit.open(t, '/runs')
    await goHome(page)
    const waits = page.getByRole('region', { name: 'Waits for you' })
    await waits.getByRole('link', { name: /Which bed comes first\?.*question/ }).waitFor()
    const running = page.getByRole('region', { name: 'Runs now' })
    await running.getByRole('link', { name: /Gardener running/ }).waitFor()
    await running.getByRole('link', { name: /Spring running.*1 of 2 done/ }).waitFor()
    assert.equal(await running.getByRole('progressbar').getAttribute('aria-valuenow'), '50')
    const failed = page.getByRole('region', { name: 'Failed or stopped in the last day' })
    await failed.getByRole('link', { name: /Gardener failed/ }).waitFor()
    await page.getByText('Tokens today', { exact: true }).waitFor()
    await page
      .getByText(/^yesterday /)
      .first()
      .waitFor()
    await waits.getByRole('link', { name: /Which bed comes first/ }).click()
    await page.waitForURL(/\/inbox\?item=/)
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Inbox 1' }).waitFor()
    await page.goBack()
    await failed.getByRole('link', { name: /Gardener failed/ }).click()
    await page.waitForURL(/\/runs\/[^/]+$/)
    await goHome(page)
    await page.getByRole('button', { name: 'New project' }).click()
    const dialog = page.getByRole('dialog', { name: 'New project' })
    await dialog.getByLabel('Name').fill('Meadow')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.waitForURL(/\/agents$/)
    await goHome(page)
    const meadow = page.getByRole('region', { name: 'Projects' }).getByRole('listitem').filter({ hasText: 'Meadow' })
    await meadow.getByText('Nothing here yet.').waitFor()
    await meadow.getByRole('link', { name: 'New agent' }).click()
    await page.waitForURL(/\/agents\/new$/)
    await kit.checkLooks(page, '/runs', async () => {
      await goHome(page)
      await page.getByRole('region', { name: 'Runs now' }).getByRole('link').first().waitFor()
      assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth')) <= 0)
    })
    assert.deepEqual(troubles, [])
  })

  inSystem('cmd-k finds pages, projects, actions and things, by keyboard alone', async (t) => {
    const { page, troubles } = await kit.open(t, '/runs')
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    const box = page.getByRole('textbox', { name: 'Search or jump' })
    await page.keyboard.press('Control+k')
    await box.waitFor()
    await page.keyboard.type('set aud')
    await page.getByRole('button', { name: 'Audit' }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/settings\/audit$/)
    await box.waitFor({ state: 'detached' })
    await page.getByLabel('Action').focus()
    await page.keyboard.press('Control+k')
    await box.waitFor()
    await page.keyboard.type('garde')
    await page.getByRole('button', { name: /^Gardener agent/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(new RegExp(`/agents/${kit.agent.id}$`))
    await page.getByRole('button', { name: 'Search or jump…' }).click()
    await box.fill('zebra crossing')
    await page.getByText('Nothing is found.').waitFor()
    await page.keyboard.press('Escape')
    await box.waitFor({ state: 'detached' })
    assert.deepEqual(troubles, [])
  })

  inSystem('on a phone the menu button opens the navigation, and nothing scrolls sideways', async (t) => {
    const { page, troubles } = await kit.open(t, '/runs')
    await page.setViewportSize(PHONE)
    const nav = page.getByRole('navigation', { name: 'Main' })
    const menu = nav.getByRole('button', { name: 'Menu' })
    await menu.waitFor()
    assert.equal(await nav.getByRole('link', { name: 'Agents' }).isVisible(), false)
    await menu.press('Enter')
    assert.equal(await menu.getAttribute('aria-expanded'), 'true')
    await nav.getByRole('link', { name: 'Agents' }).waitFor()
    await page.keyboard.press('Escape')
    await nav.getByRole('link', { name: 'Agents' }).waitFor({ state: 'hidden' })
    await menu.click()
    await nav.getByRole('link', { name: 'Settings' }).click()
    await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor()
    await nav.getByRole('link', { name: 'Agents' }).waitFor({ state: 'hidden' })
    assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth')) <= 0)
    assert.deepEqual(troubles, [])
  })

  inSystem('axe finds nothing in the open menu and in the search, dark and light', async (t) => {
    const { page } = await kit.open(t, '/runs')
    await kit.checkLooks(page, '/settings/keys', async () => {
      await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor()
      const menu = page.getByRole('button', { name: 'Menu' })
      if (await menu.isVisible()) await menu.click()
      else {
        await page.keyboard.press('Control+k')
        await page.getByRole('button', { name: 'Audit' }).waitFor()
        await page.waitForTimeout(300)
      }
    })
  })

  inSystem('a person signs out and in again, and a session that has ended asks them to sign in', async (t) => {
    const member = await kit.invite('member')
    const { page, context, troubles } = await kit.open(t, '/runs', member)
    await page.getByRole('button', { name: 'Account' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    await page.getByLabel('Email').fill('member@example.com')
    await page.getByRole('textbox', { name: 'Password' }).fill('long enough')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    await page.getByRole('button', { name: 'Account' }).click()
    await page.getByRole('menuitem', { name: 'Your account' }).click()
    await page.getByRole('list', { name: 'Sessions' }).waitFor()
    await context.clearCookies()
    await page.getByRole('link', { name: 'Members' }).click()
    await page.getByText('Your session has ended.').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('a page says when its connection is lost, and when it is back', async (t) => {
    const { page, context } = await openPage(kit.browser, { origin: kit.muster.url, cookie: kit.cookie })
    t.after(() => context.close())
    await page.route(/\/api\/events$/, (route) => route.abort())
    await kit.goTo(page, '/runs')
    const region = page.getByRole('status', { name: 'Connection' })
    await region.getByText('The connection to Muster is lost.').waitFor()
    await page.unroute(/\/api\/events$/)
    await region.getByText('The connection to Muster is back.').waitFor()
    await region.getByText('The connection').waitFor({ state: 'detached' })
  })

  inSystem('the project switch keeps the page, and a person without a project is told what to do', async (t) => {
    const { id } = await kit.api<Project>('POST /api/projects', { name: 'Terrace' })
    const { page, troubles } = await kit.open(t, '/settings/keys')
    await page.getByRole('combobox', { name: 'Project' }).click()
    await page.getByRole('option', { name: 'Terrace' }).click()
    await page.waitForURL(new RegExp(`/projects/${id}/settings/`))
    const viewer = await kit.invite('viewer')
    const { page: theirs } = await kit.open(t, '/runs', viewer)
    await goHome(theirs)
    await theirs.getByRole('region', { name: 'Projects' }).getByText('Garden').waitFor()
    assert.equal(await theirs.getByRole('button', { name: 'New project' }).count(), 0)
    const { items } = await kit.api<{ items: { id: string; email: string }[] }>(`GET ${kit.path}/members`)
    const member = items.find(({ email }) => email === 'viewer@example.com')
    await kit.muster.call(`DELETE ${kit.path}/members/${member?.id}`)
    await kit.goTo(theirs, '/runs')
    await goHome(theirs)
    await theirs.getByText('You are in no project yet.').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('an invitation is accepted with a name and a password, and works once', async (t) => {
    const { invitation_url: link } = await kit.api<{ invitation_url: string }>(`POST ${kit.path}/members`, {
      email: 'fern@example.com',
      role: 'viewer',
    })
    const { page, context, troubles } = await openPage(kit.browser, { origin: kit.muster.url })
    t.after(() => context.close())
    await kit.goTo(page, '/runs')
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    await goInside(page, new URL(link).pathname)
    await page.getByRole('heading', { name: 'Join Garden', level: 1 }).waitFor()
    assert.equal(await page.getByRole('navigation').count(), 0)
    await page.getByLabel('Name').fill('Fern')
    await page.getByRole('textbox', { name: 'Password' }).fill('long enough')
    await page.getByRole('button', { name: 'Accept' }).click()
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
    await page.getByRole('region', { name: 'Projects' }).getByText('Garden').waitFor()
    await goInside(page, new URL(link).pathname)
    await page.getByRole('heading', { name: 'This invitation does not work', level: 1 }).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('a reset link sets a new password and signs in, and the doors have no violations', async (t) => {
    await kit.invite('admin')
    const { items } = await kit.api<{ items: { user_id: string; email: string }[] }>(`GET ${kit.path}/members`)
    const person = items.find(({ email }) => email === 'admin@example.com')
    const { reset_url: link } = await kit.api<{ reset_url: string }>(`POST /api/users/${person?.user_id}/reset`, {})
    const { invitation_url: other } = await kit.api<{ invitation_url: string }>(`POST ${kit.path}/members`, {
      email: 'moss@example.com',
      role: 'viewer',
    })
    const { page, context, troubles } = await openPage(kit.browser, { origin: kit.muster.url })
    t.after(() => context.close())
    for (const [address, title] of [
      [link, 'Choose a new password'],
      [other, 'Join Garden'],
      ['http://x/resets/unknown', 'This link does not work'],
    ] as const) {
      await kit.checkLooks(page, '/runs', async () => {
        await page.getByRole('button', { name: 'Sign in' }).waitFor()
        await goInside(page, new URL(address).pathname)
        await page.getByRole('heading', { name: title, level: 1 }).waitFor()
      })
    }
    await goInside(page, new URL(link).pathname)
    await page.getByRole('textbox', { name: 'New password' }).fill('a newer one')
    await page.getByRole('button', { name: 'Set it and sign in' }).click()
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('Home has the figures of sixty projects, and makes few requests for them', async (t) => {
    for (let made = 0; made < MANY_FAILURES; made++) await kit.trigger({ tag: `fails ${made}`, steps: [] })
    const failed = async (): Promise<number> =>
      (await kit.api<{ items: unknown[] }>(`GET ${kit.path}/runs?status=failed&limit=200`)).items.length
    await until(async () => (await failed()) >= MANY_FAILURES, 'the runs fail')
    const fields: Project[] = []
    for (let made = 0; made < MANY_PROJECTS; made++) {
      const field = await kit.api<Project>('POST /api/projects', { name: `Field ${made}` })
      fields.push(field)
      await kit.api(`POST /api/projects/${field.id}/tasks`, { title: `Plough field ${made}` })
    }
    const { page, context, troubles } = await openPage(kit.browser, { origin: kit.muster.url, cookie: kit.cookie })
    t.after(() => context.close())
    const requests: string[] = []
    page.on('request', (request) => {
      const { pathname } = new URL(request.url())
      if (pathname.startsWith('/api/')) requests.push(pathname)
    })
    await page.goto(`${kit.muster.url}/`)
    const figures = page.getByRole('region', { name: 'Figures of your projects' })
    const figure = (name: string) => figures.getByRole('definition').and(page.locator(`dt:text-is("${name}") + dd`))
    const { waits, fails } = await kit.api<Home>('GET /api/home')
    assert.ok(waits.count >= MANY_PROJECTS && fails.count >= MANY_FAILURES)
    await figure('Failed').getByText(String(fails.count), { exact: true }).waitFor()
    await figure('Waits for you').getByText(String(waits.count), { exact: true }).waitFor()
    await page.waitForTimeout(2_000)
    assert.ok(requests.length < MOST_REQUESTS, requests.join('\n'))

    const waiting = page.getByRole('region', { name: 'Waits for you' })
    await waiting.getByRole('link', { name: /^Plough field 59.*Field 59/ }).waitFor()
    await waiting.getByRole('button', { name: '44 more' }).click()
    await waiting.getByText('Only the newest 50 are listed.').waitFor()
    const rows = page.getByRole('region', { name: 'Projects' })
    await rows.getByRole('button', { name: /^50 of \d+ more$/ }).click()
    await rows.getByRole('button', { name: /^\d+ more$/ }).click()
    const garden = rows.getByRole('listitem').filter({ hasText: 'Garden' })
    await garden.getByText(`${fails.count} failed`).waitFor()
    await rows.getByRole('listitem').filter({ hasText: 'Field 0' }).getByText('Nothing here yet.').waitFor()

    const before = requests.length
    await kit.api(`POST /api/projects/${fields[0]?.id}/tasks`, { title: 'Harvest it' })
    await waiting.getByRole('link', { name: /^Harvest it.*Field 0/ }).waitFor()
    assert.ok(
      requests.slice(before).every((path) => path === '/api/home'),
      requests.slice(before).join('\n'),
    )
    await kit.checkLooks(page, '/runs', async () => {
      await goHome(page)
      await page.getByText('Harvest it').waitFor()
      assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth')) <= 0)
    })
    assert.deepEqual(troubles, [])
  })

  inSystem('a flow of a halted project is halted on Home, without an ETA', async (t) => {
    kit.model.hold('halt')
    t.after(async () => kit.model.release('halt'))
    const leaf = (tag: string, gate?: string) => ({
      type: 'task',
      agent: 'Gardener',
      input: { tag, steps: [{ say: 'Leaf.', ...(gate && { gate }) }] },
    })
    const flow = await kit.api<{ id: string }>(`POST ${kit.path}/flows`, {
      name: 'Autumn',
      root: { type: 'sequential', steps: [leaf('autumn one'), leaf('autumn two', 'halt')] },
    })
    await kit.api(`POST ${kit.path}/flow-runs`, { flow_id: flow.id })
    const { page, troubles } = await kit.open(t, '/runs')
    await goHome(page)
    const running = page.getByRole('region', { name: 'Runs now' })
    await running.getByRole('link', { name: /^Autumn running.*1 of 2 done.*ETA/ }).waitFor()
    await kit.api(`POST ${kit.path}/halt`)
    t.after(() => kit.api(`POST ${kit.path}/unhalt`))
    await running.getByRole('link', { name: /^Autumn halted(?!.*ETA)/ }).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('Home stays, marked as out of date, while it cannot be read, and is read again', async (t) => {
    const { page } = await kit.open(t, '/runs')
    await goHome(page)
    const rows = page.getByRole('region', { name: 'Projects' })
    await rows.getByRole('listitem').first().waitFor()
    await page.getByText('Tokens today', { exact: true }).waitFor()
    await page.route(/\/api\/home/, (route) => route.abort())
    await kit.api(`POST ${kit.path}/tasks`, { title: 'Prune the roses' })
    await page.getByText('This may be out of date').waitFor()
    await page.getByText('Tokens today', { exact: true }).waitFor()
    await page.unroute(/\/api\/home/)
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.getByRole('link', { name: /^Prune the roses/ }).waitFor()
    await page.getByText('This may be out of date').waitFor({ state: 'detached' })
  })
})
