// The console behind a network that loses answers, and over a project in which the work of agents fills many pages.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Agent } from '../../src/kernel/agent.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, openPage } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import type { Cleanup } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
/** More than one page of any list. */
const MANY = 210
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

describe('the console on a bad network', { skip }, () => {
  test('a task for people is in the inbox, however many tasks agents have', async (t) => {
    const project = await makeProject('Busy')
    const agent = await kit.api<Agent>(`POST ${project.path}/agents`, { name: 'Clerk' })
    await kit.api(`POST ${project.path}/agents/${agent.id}/stop`)
    await kit.api(`POST ${project.path}/tasks`, { title: 'A person must see this', priority: 'urgent' })
    for (let made = 0; made < MANY; made++) {
      await kit.api<Task>(`POST ${project.path}/tasks`, { title: `Of the agent ${made}`, assigned_to: agent.id })
    }
    const page = await open(t, `/projects/${project.id}/inbox`)
    await page.getByText('A person must see this').first().waitFor()
    await page.getByRole('link', { name: /^Inbox\W*1$/ }).waitFor()
  })

  test('a top-up whose answer was lost is made once, although it is sent again', async (t) => {
    const project = await makeProject('Lossy')
    const path = `${project.path}/agents`
    const agent = await kit.api<Agent>(`POST ${path}`, { name: 'Saver', token_allocation: 1_000 })
    const page = await open(t, `/projects/${project.id}/agents/${agent.id}?tab=budget`)
    await page.route('**/budget', async (route) => {
      await route.fetch()
      await route.abort()
    })
    const allocation = async () => (await kit.api<Agent>(`GET ${path}/${agent.id}`)).token_allocation
    await page.getByRole('button', { name: 'Top up' }).click()
    await page.getByText('Muster does not answer. Is it running?').first().waitFor()
    const after = await allocation()
    assert.ok(after !== null && after > 1_000)
    await page.unroute('**/budget')
    const answered = page.waitForResponse('**/budget')
    await page.getByRole('button', { name: 'Top up' }).click()
    assert.equal((await answered).status(), 200)
    assert.equal(await allocation(), after)
  })

  test('a proxy that answers 404 for the stream of changes does not end it', async (t) => {
    const project = await makeProject('Proxied')
    const page = await open(t, '/account')
    let asked = 0
    await page.route('**/api/events', (route) =>
      asked++ < 2 ? route.fulfill({ status: 404, body: '<h1>No backend</h1>' }) : route.continue(),
    )
    await page.goto(`${kit.muster.url}/projects/${project.id}/objects`)
    await until(async () => asked > 2, 'the stream is asked for again')
    await kit.api(`POST ${project.path}/objects`, { type: 'Person', properties: { name: 'Ada' } })
    await page.getByRole('link', { name: /Ada/ }).first().waitFor()
  })
})

async function makeProject(name: string) {
  const { id } = await kit.api<{ id: string }>('POST /api/projects', { name })
  return { id, path: `/api/projects/${id}` }
}

async function open(t: Cleanup, address: string): Promise<Page> {
  const { page, context } = await openPage(kit.browser, { origin: kit.muster.url, cookie: kit.cookie })
  t.after(() => context.close())
  await page.goto(`${kit.muster.url}${address}`)
  return page
}
