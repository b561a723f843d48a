// The flow pages in a real browser, against a real server whose agents answer when the test lets them.
import assert from 'node:assert/strict'
import { before, describe } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { Alert } from '../../src/flows/alerts.ts'
import type { Flow } from '../../src/flows/flows.ts'
import type { FlowTopology } from '../../src/flows/topology.ts'
import type { FlowTask } from '../../src/flows/trace.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, openPage, startBrowser, visit, type Watched } from '../kit/browser.ts'
import { createEmptyDatabase } from '../kit/database.ts'
import { until } from '../kit/embedded-kit.ts'
import { type FakeModel, type Plan, startFakeModel } from '../kit/fake-model.ts'
import { type Cleanup, type Muster, startMuster } from '../kit/process.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'

const wholeFile = { after: atEnd }
const skip = noBrowser
/** An update that is shown later than this is not live; the median of several updates counts. */
const LIVE_WITHIN_MS = 1_000
const ATTEMPTS = 3

let muster: Muster
let browser: Browser
let model: FakeModel
let adminCookie: string
let demo: string

before(async () => {
  if (skip) return
  model = await startFakeModel(wholeFile)
  muster = await startMuster(wholeFile, { databaseUrl: await createEmptyDatabase() })
  browser = await startBrowser(wholeFile)
  await api('POST /api/providers', { name: 'planned', kind: 'openai-compatible', base_url: model.url })
  const signedIn = await muster.call(`GET ${new URL(muster.signInLink()).pathname}`, { token: null })
  adminCookie = cookieOf(signedIn.headers)
  demo = (await api<{ items: { id: string }[] }>('GET /api/projects')).items[0]?.id ?? assert.fail('no demo')
})

describe('the flow pages in a browser', { concurrency: 2, skip }, () => {
  test('Flow execution dashboard: an active flow shows its progress, breakdown and ETA, and they follow within a second', async (t) => {
    const project = await createProject()
    for (let attempt = 1; ; attempt++) {
      const { lists, details } = await measureUpdates(t, project)
      if (lists < LIVE_WITHIN_MS && details < LIVE_WITHIN_MS) break
      // The machine may have had other things to do.
      assert.ok(attempt < ATTEMPTS, `the list took ${lists} ms to show an end, the page ${details} ms (medians)`)
    }
  })

  inSystem('the demo has a flow that has run, and a template is started with its example input', async (t) => {
    const { page, troubles } = await open(t, adminCookie, `${demo}/flows`)
    const recent = page.getByRole('list', { name: 'Recent flow runs' })
    const first = recent.getByRole('listitem').filter({ hasText: 'Swarm test' })
    await first.getByText('completed').first().waitFor()
    await first.getByText('parallel', { exact: true }).waitFor()
    await page.getByText('Start a flow', { exact: true }).click()
    const form = page.getByRole('form', { name: 'Start a flow' })
    await form.getByLabel('Flow', { exact: true }).selectOption('Adaptive batch')
    const example: unknown = JSON.parse(await form.getByLabel('Input').inputValue())
    await form.getByLabel('Input').fill('{')
    await form.getByRole('button', { name: 'Start flow' }).click()
    await form.getByText(/^The input is no JSON/).waitFor()
    await form.getByLabel('Input').fill(JSON.stringify(example))
    await form.getByRole('button', { name: 'Start flow' }).click()
    await page.getByRole('link', { name: '← Flows' }).waitFor()
    const started = page.url().split('/').at(-1) ?? ''
    const run = await ended(demo, started)
    assert.deepEqual(run.input, example)
    assert.equal(run.status, 'completed')
    await page.locator('.title').getByText('completed').waitFor()
    await page.locator('tr[data-task="share_1"][data-status="completed"]').waitFor()
    await page.getByRole('region', { name: 'Topology' }).getByText('hierarchical').first().waitFor()
    for (const name of ['JSON', 'Chrome trace', 'OTLP', 'CSV']) {
      const href = await page.getByRole('link', { name, exact: true }).getAttribute('href')
      const answer = await muster.call(`GET ${href}`, { token: null, cookie: adminCookie })
      assert.equal(answer.status, 200, name)
    }
    assert.deepEqual(troubles, [])
  })

  inSystem('an alert is shown with its cause and is acted upon: more workers, acknowledged, cancelled', async (t) => {
    const project = await createProject()
    await createAgent(project, 'Clerk')
    const flow = await api<Flow>(`POST ${pathOf(project)}/flows`, {
      name: 'Nightly',
      root: inTurn('Clerk', ['gate-slow']),
    })
    for (let round = 0; round < 3; round++) await ended(project, (await startRun(project, { flow_id: flow.id })).id)
    model.hold('gate-slow')
    t.after(async () => model.release('gate-slow'))
    const run = await startRun(project, { flow_id: flow.id, workers: 2 })
    const { page, troubles } = await open(t, adminCookie, `${project}/flows`)
    const card = page.locator(`[data-run="${run.id}"]`)
    const alert = card.getByRole('region', { name: 'Alert' })
    await alert.getByText('Slower than expected.').waitFor()
    const { items } = await api<{ items: Alert[] }>(`GET ${pathOf(project)}/alerts`)
    // The alert is made again after twice the time.
    const first = card.locator(`[data-alert="${items[0]?.id}"]`)
    await first.getByText(items[0]?.suspected_cause ?? 'nothing').waitFor()
    assert.match(items[0]?.suspected_cause ?? '', /task_0/)
    await alert.getByRole('button', { name: 'Add 2 workers' }).click()
    await alert.getByRole('button', { name: 'Add 4 workers' }).waitFor()
    assert.equal((await readRun(project, run.id)).workers, 4)
    await alert.getByRole('button', { name: 'Acknowledge' }).click()
    await first.waitFor({ state: 'detached' })
    await card.getByRole('link', { name: 'Nightly' }).click()
    await page.getByRole('button', { name: 'Cancel…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the flow' }).click()
    await page.getByText('The flow run is being cancelled.').waitFor()
    model.release('gate-slow')
    await page.locator('.title').getByText('cancelled').waitFor()
    assert.equal((await ended(project, run.id)).status, 'cancelled')
    assert.deepEqual(troubles, [])
  })

  test('a cancel is seen while it drains, and what the tasks gave after it', async (t) => {
    const project = await createProject()
    await createAgent(project, 'Clerk')
    model.hold('gate-drain')
    t.after(async () => model.release('gate-drain'))
    const run = await startRun(project, { root: inTurn('Clerk', ['free', 'gate-drain', 'gate-drain']) })
    const list = await open(t, adminCookie, `${project}/flows`)
    const { page, troubles } = await open(t, adminCookie, `${project}/flows/${run.id}`)
    await page.locator('tr[data-task="task_1"][data-status="running"]').waitFor()
    await page.getByRole('button', { name: 'Cancel…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Keep it running' }).click()
    assert.equal((await readRun(project, run.id)).cancel_requested_at, null)
    await page.getByRole('button', { name: 'Cancel…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the flow' }).click()
    const card = list.page.locator(`[data-run="${run.id}"]`)
    await card.getByText('cancelling').waitFor()
    assert.equal(await card.getByText('ETA').isVisible(), false)
    for (const isAgain of [false, true]) {
      if (isAgain) await page.reload()
      await page.locator('.title').getByText('cancelling').waitFor()
      assert.equal(await page.getByRole('button', { name: /^(Cancel|Add)/ }).count(), 0)
    }
    assert.equal((await readRun(project, run.id)).eta, null)
    model.release('gate-drain')
    await page.locator('.title').getByText('cancelled').waitFor()
    await page.locator('.figures').getByText('2 of 3').waitFor()
    await page.getByText('Results (2)').waitFor()
    assert.deepEqual(await page.locator('.results dt').allInnerTexts(), ['task_0', 'task_1'])
    assert.deepEqual(await page.locator('.results dd').allInnerTexts(), ['Done it.', 'Done it.'])
    assert.deepEqual([...list.troubles, ...troubles], [])
  })

  inSystem('results that are too large are linked, and an unknown run leads back to the flows', async (t) => {
    const branches = ['a', 'b'].map((id) => ({ type: 'task', id, function: 'muster.identity' }))
    const input = 'x'.repeat(600_000)
    const { id } = await startRun(demo, { root: { type: 'parallel', branches }, input })
    await ended(demo, id)
    const { page } = await open(t, adminCookie, `${demo}/flows/${id}`)
    await page.getByText('Results', { exact: true }).click()
    const href = await page.getByRole('link', { name: 'All results' }).getAttribute('href')
    const { body } = await muster.call(`GET ${href}`, { token: null, cookie: adminCookie })
    assert.deepEqual(body, { a: input, b: input })
    await page.goto(addressOf(`${demo}/flows/${demo}`))
    await page.getByRole('alert').waitFor()
    await page.getByRole('link', { name: '← Flows' }).click()
    await page.getByRole('list', { name: 'Recent flow runs' }).waitFor()
  })

  inSystem('the topology of an adaptive flow is switched on its page', async (t) => {
    const project = await createProject()
    await createAgent(project, 'Clerk')
    model.hold('gate-topology')
    t.after(async () => model.release('gate-topology'))
    const tasks = Array.from({ length: 4 }, (_, place) => leaf('Clerk', `part_${place}`, 'gate-topology'))
    const run = await startRun(project, { root: { type: 'adaptive', topology: 'star', workers: 2, tasks } })
    const { page, troubles } = await open(t, adminCookie, `${project}/flows/${run.id}`)
    const box = page.getByRole('region', { name: 'Topology' })
    await box.getByRole('button', { name: 'Switch to mesh' }).click()
    await box.getByText(/^star → mesh/).waitFor()
    await box.getByRole('button', { name: 'Switch to star' }).waitFor()
    const { current } = await api<FlowTopology>(`GET ${pathOf(project)}/flow-runs/${run.id}/topology`)
    assert.equal(current, 'mesh')
    model.release('gate-topology')
    await ended(project, run.id)
    await box.getByRole('button').first().waitFor({ state: 'detached' })
    assert.deepEqual(troubles, [])
  })

  inSystem(
    'of a thousand tasks two hundred are shown, and the page says so; a status chooses among them',
    async (t) => {
      const project = await createProject()
      const branches = Array.from({ length: 1_000 }, (_, place) => ({
        ...{ type: 'task', id: `t_${place}`, function: place === 700 ? 'muster.chunk' : 'muster.identity', args: {} },
      }))
      const run = await startRun(project, { root: { type: 'parallel', branches } })
      assert.equal((await ended(project, run.id)).status, 'partial')
      const { page, troubles } = await open(t, adminCookie, `${project}/flows/${run.id}`)
      await page.getByText('200 of 1,000 tasks are shown').waitFor()
      assert.equal(await page.locator('tr[data-task]').count(), 200)
      await page.getByRole('button', { name: /failed/ }).click()
      await page.locator('tr[data-task="t_700"][data-status="failed"]').waitFor()
      assert.equal(await page.locator('tr[data-task]').count(), 1)
      const error = page.locator('tr[data-task="t_700"] summary')
      assert.notEqual(await error.textContent(), '')
      await page.getByRole('button', { name: /failed/ }).click()
      await page.getByText('200 of 1,000 tasks are shown').waitFor()
      assert.deepEqual(troubles, [])
    },
  )

  test('what people called flows and agents opens no dialog, loads nothing and is shown as it is', async (t) => {
    const evil = `<img src="http://evil.invalid/a.png" onerror="alert(1)"><script>alert(2)</script>`
    const project = await createProject()
    await createAgent(project, evil)
    const say = `<script>alert(3)</script>`
    const step = { type: 'task', agent: evil, input: planOf('said', say) }
    const root = { type: 'sequential', steps: [step, { ...step, id: 'said' }] }
    const flow = await api<Flow>(`POST ${pathOf(project)}/flows`, { name: `F ${evil}`, root })
    const run = await startRun(project, { flow_id: flow.id, input: { [evil]: evil } })
    await ended(project, run.id)
    const { page, troubles } = await open(t, adminCookie, `${project}/flows`)
    await page.getByRole('link', { name: `F ${evil}` }).waitFor()
    await page.getByText('Start a flow', { exact: true }).click()
    await page.getByLabel('Flow', { exact: true }).waitFor()
    await assertPlain(page)
    await page.goto(addressOf(`${project}/flows/${run.id}`))
    await page.locator('tbody th').getByText(evil).first().waitFor()
    await page.getByText('Output', { exact: true }).click()
    await page.getByText(say).first().waitFor()
    await page.getByText('Results (1)').click()
    await page.locator('.results').getByText(say).waitFor()
    await page.getByText('Input', { exact: true }).click()
    await assertPlain(page)
    assert.deepEqual(troubles, [])
  })

  test('a viewer sees the flows and no button that changes anything', async (t) => {
    const project = await createProject()
    await createAgent(project, 'Clerk')
    model.hold('gate-viewer')
    t.after(async () => model.release('gate-viewer'))
    const run = await startRun(project, { root: inTurn('Clerk', ['gate-viewer', 'gate-viewer']) })
    const viewer = await join(project)
    const { page, troubles } = await open(t, viewer, `${project}/flows`)
    await page.locator(`[data-run="${run.id}"]`).getByText('running').first().waitFor()
    assert.equal(await page.locator('.panel button').count(), 0)
    assert.equal(await page.getByText('Start a flow', { exact: true }).count(), 0)
    await page.locator(`[data-run="${run.id}"]`).getByRole('link').click()
    await page.locator('tr[data-task="task_0"][data-status="running"]').waitFor()
    // The only buttons are those that choose what is shown.
    assert.equal(await page.locator('.panel button').count(), await page.locator('.panel button[data-count]').count())
    assert.deepEqual(troubles, [])
  })
})

interface Medians {
  lists: number
  details: number
}

/** A flow whose tasks end one by one, watched in the list and on its page: the delay from each commit to the screen. */
async function measureUpdates(t: Cleanup, project: string): Promise<Medians> {
  const name = `Clerk ${crypto.randomUUID()}`
  await createAgent(project, name)
  const gates = Array.from({ length: 6 }, (_, place) => `${name} ${place}`)
  for (const gate of gates) model.hold(gate)
  t.after(async () => gates.forEach((gate) => void model.release(gate)))
  const run = await startRun(project, { root: inTurn(name, gates) })
  const list = await open(t, adminCookie, `${project}/flows`)
  const detail = await open(t, adminCookie, `${project}/flows/${run.id}`)
  const card = list.page.locator(`[data-run="${run.id}"]`)
  await card.getByText('running').first().waitFor()
  await detail.page.locator('tr[data-task="task_0"][data-status="running"]').waitFor()
  assert.deepEqual(await breakdown(card), { completed: 0, running: 1, failed: 0, skipped: 0, pending: 5 })
  await noteShown(list.page, `[data-run="${run.id}"] [data-count="completed"] strong`)
  await noteShown(detail.page, 'tbody')
  for (const [place, gate] of gates.slice(0, -1).entries()) {
    await until(async () => model.held(gate) === 1, `task ${place} waits for the model`)
    model.release(gate)
    await detail.page.locator(`tr[data-task="task_${place}"][data-status="completed"]`).waitFor()
    await card
      .locator('[data-count="completed"]')
      .getByText(String(place + 1), { exact: true })
      .waitFor()
  }
  assert.deepEqual(await breakdown(card), { completed: 5, running: 1, failed: 0, skipped: 0, pending: 0 })
  await card.getByText(/ETA (about \d+ (s|min)|any moment)/).waitFor()
  const bar = card.getByRole('progressbar')
  assert.deepEqual([await bar.getAttribute('aria-valuenow'), await bar.getAttribute('aria-valuemax')], ['5', '6'])
  const { items } = await api<{ items: FlowTask[] }>(`GET ${pathOf(project)}/flow-runs/${run.id}/tasks`)
  const endOf = (place: number): number => Date.parse(items.find(({ id }) => id === `task_${place}`)?.end_at ?? '')
  const [inList, onPage] = [await shownAt(list.page), await shownAt(detail.page)]
  const delays = (seen: Record<string, number>, key: (place: number) => string): number[] =>
    gates.slice(0, -1).map((_, place) => (seen[key(place)] ?? Number.POSITIVE_INFINITY) - endOf(place))
  model.release(gates.at(-1) ?? '')
  await list.page.getByRole('list', { name: 'Recent flow runs' }).locator(`[data-run="${run.id}"]`).waitFor()
  await detail.page.locator('.title').getByText('completed').waitFor()
  assert.deepEqual([...list.troubles, ...detail.troubles], [])
  return {
    lists: medianOf(delays(inList, (place) => String(place + 1))),
    details: medianOf(delays(onPage, (place) => `task_${place}`)),
  }
}

/** From now on the page notes when a text appears under the selector first, and when a row is first completed. */
const noteShown = (page: Page, selector: string): Promise<unknown> =>
  page.evaluate(
    `{
      const root = document.querySelector(${JSON.stringify(selector)})
      window.shownAt = {}
      new MutationObserver((changes) => {
        for (const { target, attributeName } of changes) {
          const key = attributeName ? (target.dataset.status === 'completed' ? target.dataset.task : '') : root.textContent
          window.shownAt[key] ??= Date.now()
        }
      }).observe(root, { subtree: true, childList: true, characterData: true, attributeFilter: ['data-status'] })
    }`,
  )

const shownAt = (page: Page): Promise<Record<string, number>> => page.evaluate('window.shownAt')

const medianOf = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.POSITIVE_INFINITY

async function breakdown(card: ReturnType<Page['locator']>): Promise<Record<string, number>> {
  const texts = await card.locator('[data-count]').allInnerTexts()
  return Object.fromEntries(
    texts.map((text) => {
      const [, status = '', count = ''] = /(\w+)\s+(\d+)$/.exec(text) ?? []
      return [status, Number(count)]
    }),
  )
}

async function api<Body = { id: string }>(route: string, body?: unknown): Promise<Body> {
  const answer = await muster.call<Body>(route, body === undefined ? {} : { body })
  assert.ok(answer.status < 300, `${route}: ${answer.text}`)
  return answer.body
}

const pathOf = (project: string): string => `/api/projects/${project}`
const addressOf = (place: string): string => `${muster.url}/#/projects/${place}`

/** Answers the id of the project. */
const createProject = async (): Promise<string> => (await api('POST /api/projects', { name: 'Flows' })).id

const createAgent = (project: string, name: string) =>
  api(`POST ${pathOf(project)}/agents`, { name, model: { provider: 'planned', name: 'planned' } })

const planOf = (tag: string, say: string, gate?: string): Plan => ({ tag, steps: [{ say, ...(gate ? { gate } : {}) }] })

const leaf = (agent: string, id: string, gate: string) => ({
  type: 'task',
  id,
  agent,
  input: planOf(id, 'Done it.', gate),
})

/** Steps one after the other, each as its gate allows. */
const inTurn = (agent: string, gates: string[]) => ({
  type: 'sequential',
  steps: gates.map((gate, place) => leaf(agent, `task_${place}`, gate)),
})

const startRun = (project: string, body: Record<string, unknown>): Promise<FlowRun> =>
  api<FlowRun>(`POST ${pathOf(project)}/flow-runs`, body)

const readRun = (project: string, id: string): Promise<FlowRun> =>
  api<FlowRun>(`GET ${pathOf(project)}/flow-runs/${id}`)

async function ended(project: string, id: string): Promise<FlowRun> {
  await until(async () => (await readRun(project, id)).completed_at !== null, 'the flow run has ended')
  return readRun(project, id)
}

/** The cookie of a new person who may only look. */
async function join(project: string): Promise<string> {
  const invited = { email: `viewer-${project}@example.com`, role: 'viewer' }
  const { invitation_url } = await api<{ invitation_url: string }>(`POST ${pathOf(project)}/members`, invited)
  const accepted = await muster.call(
    `POST /api/invitations/${new URL(invitation_url).pathname.split('/').at(-1)}/accept`,
    {
      ...{ token: null, headers: { origin: muster.url } },
      body: { name: 'viewer', password: 'a long password' },
    },
  )
  assert.equal(accepted.status, 200, accepted.text)
  return cookieOf(accepted.headers)
}

const cookieOf = (headers: Headers): string => headers.getSetCookie()[0]?.split(';')[0] ?? assert.fail('no cookie')

/** The page is gone after the test. */
async function open(t: Cleanup, cookie: string, place: string): Promise<Watched> {
  const watched = await openPage(browser, { origin: muster.url, cookie })
  t.after(() => watched.context.close())
  await visit(watched.page, addressOf(place))
  return watched
}

/** Nothing that the page shows has become an element that loads, runs or leads to a script. */
async function assertPlain(page: Page): Promise<void> {
  const made = page.locator('main').locator('img, script, iframe, object, embed, [onerror], [href^="javascript:"]')
  assert.equal(await made.count(), 0)
}
