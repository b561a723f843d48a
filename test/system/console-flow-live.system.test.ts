// The page of a flow run under strain: hundreds of tasks that change all the time, a server that is killed, a page that
// nobody looks at.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import type { FlowTask } from '../../src/flows/history/trace.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, openPage, startBrowser } from '../kit/browser.ts'
import { busyWhile } from '../kit/busy-while.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { startFakeModel } from '../kit/fake-model.ts'
import { freePort } from '../kit/free-port.ts'
import { makeFolder, startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const TASKS = 500
/** Each task that ends lets another one begin: two events. */
const END_EVERY_MS = 100
const MEASURED = 100
const SHOWN_WITHIN_MS = 250
const MOST_BUSY = 0.3
const ATTEMPTS = 3
/** Other tests have the processors meanwhile. On a machine of its own the test prints figures within the bounds above. */
const AMONG_OTHERS = 4
const LIVE_AGAIN_WITHIN_MS = 5_000

const skip = noBrowser
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

describe('the page of a flow run under strain', { skip }, () => {
  test('500 tasks at 20 events a second: a row is shown in time, and the main thread is mostly idle', async (t) => {
    const gates = Array.from({ length: TASKS }, (_, place) => `strain ${place}`)
    for (const gate of gates) kit.model.hold(gate)
    t.after(async () => {
      for (const gate of gates) kit.model.release(gate)
    })
    const branches = gates.map((gate, place) => leaf('Gardener', `task_${place}`, gate))
    // Few workers, so that the rows that change are in view.
    const body = { root: { type: 'parallel', branches }, workers: 12 }
    const run = await kit.api<FlowRun>(`POST ${kit.path}/flow-runs`, body)
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    await page.locator('[data-task][data-status="running"]').first().waitFor()
    await noteShown(page)
    const waiting = gates.values()
    for (let attempt = 1; ; attempt++) {
      const busy = await busyWhile(page, async () => {
        for (const gate of waiting.take(MEASURED)) {
          await until(async () => kit.model.held(gate) === 1, 'the task waits for the model')
          kit.model.release(gate)
          await delay(END_EVERY_MS)
        }
      })
      const shown = await delaysOf(page, run.id)
      const p95 = shown[Math.floor(0.95 * shown.length)] ?? Number.POSITIVE_INFINITY
      t.diagnostic(`${shown.length} rows, p95 ${p95} ms, main thread ${Math.round(100 * busy)} % busy`)
      if (p95 < SHOWN_WITHIN_MS && busy < MOST_BUSY) break
      if (attempt < ATTEMPTS) continue
      assert.ok(p95 < AMONG_OTHERS * SHOWN_WITHIN_MS, `p95 is ${p95} ms`)
      assert.ok(busy < 2 * MOST_BUSY, `the main thread is ${Math.round(100 * busy)} % busy`)
      break
    }
    assert.deepEqual(troubles, [])
  })

  test('after the server was killed and started again the page is live without a reload, and nothing is stale', async (t) => {
    const model = await startFakeModel(t)
    const [port, databaseUrl, folder] = [await freePort(), await createUnusedDatabase(), await makeFolder(t)]
    const options = { port, databaseUrl, dataDir: `${folder}/data`, env: { MUSTER_DEMO: 'off', MUSTER_LEASE: '2000' } }
    const first = await startMuster(t, options)
    const signedIn = await first.call(`GET ${new URL(first.signInLink()).pathname}`, { token: null })
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? assert.fail('no cookie')
    await first.call('POST /api/providers', {
      body: { name: 'planned', kind: 'openai-compatible', base_url: model.url },
    })
    const { body: project } = await first.call<{ id: string }>('POST /api/projects', { body: { name: 'Restart' } })
    const path = `/api/projects/${project.id}`
    await first.call(`POST ${path}/agents`, {
      body: { name: 'Clerk', prompt: 'Work.', model: { provider: 'planned', name: 'any' } },
    })
    const gates = ['one', 'two', 'three']
    for (const gate of gates) model.hold(gate)
    t.after(async () => {
      for (const gate of gates) model.release(gate)
    })
    const steps = gates.map((gate, place) => leaf('Clerk', `task_${place}`, gate))
    const { body: run } = await first.call<FlowRun>(`POST ${path}/flow-runs`, {
      body: { root: { type: 'sequential', steps } },
    })
    const { page, context, troubles } = await openPage(await startBrowser(t), { origin: first.url, cookie })
    t.after(() => context.close())
    await page.goto(`${first.url}/projects/${project.id}/flows/${run.id}`)
    await page.locator('[data-task="task_0"][data-status="running"]').waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await page.evaluate('window.isSamePage = true')
    await first.kill('SIGKILL')
    await page.getByText('Reconnecting').waitFor()
    await page.getByText('This may be out of date').waitFor()
    await startMuster(t, options)
    await page.getByText('Live', { exact: true }).waitFor({ timeout: LIVE_AGAIN_WITHIN_MS })
    await page.getByText('This may be out of date').waitFor({ state: 'detached' })
    for (const [place, gate] of gates.entries()) {
      model.release(gate)
      await page.locator(`[data-task="task_${place}"][data-status="completed"]`).waitFor()
    }
    await page.getByText('The flow run is completed.').waitFor()
    assert.equal(await page.evaluate('window.isSamePage'), true)
    assert.deepEqual(troubles, [])
  })

  test('a hidden page holds no stream, and shows what happened meanwhile when somebody looks again', async (t) => {
    kit.model.hold('unseen')
    kit.model.hold('seen')
    t.after(async () => {
      kit.model.release('unseen')
      kit.model.release('seen')
    })
    const steps = [leaf('Gardener', 'first', 'unseen'), leaf('Gardener', 'second', 'seen')]
    const run = await kit.api<FlowRun>(`POST ${kit.path}/flow-runs`, { root: { type: 'sequential', steps } })
    const { page, troubles } = await kit.open(t, `/flows/${run.id}`)
    const isStream = (request: { url(): string }): boolean => request.url().endsWith(`${run.id}/events`)
    await page.locator('[data-task="first"][data-status="running"]').waitFor()
    const closed = page.waitForEvent('requestfailed', isStream)
    await look(page, 'hidden')
    await closed
    kit.model.release('unseen')
    await until(async () => kit.model.held('seen') === 1, 'the second task waits for the model')
    const opened = page.waitForEvent('request', isStream)
    await look(page, 'visible')
    await opened
    await page.locator('[data-task="first"][data-status="completed"]').waitFor()
    kit.model.release('seen')
    await page.locator('[data-task="second"][data-status="completed"]').waitFor()
    assert.deepEqual(troubles, [])
  })
})

const leaf = (agent: string, id: string, gate: string) => ({
  type: 'task',
  id,
  agent,
  input: { tag: id, steps: [{ say: 'Done it.', gate }] },
})

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

/** The delays from each event to its row, the shortest first; the page forgets them. */
async function delaysOf(page: Page, id: string): Promise<number[]> {
  const shown = await page.evaluate<Record<string, number>>('{ const all = window.shownAt; window.shownAt = {}; all }')
  const { tasks } = await kit.api<{ tasks: FlowTask[] }>(`GET ${kit.path}/flow-runs/${id}/trace`)
  const ends = new Map(tasks.map((task) => [task.id, Date.parse(task.end_at ?? '')]))
  return Object.entries(shown)
    .flatMap(([task, at]) => (ends.has(task) ? [at - (ends.get(task) ?? 0)] : []))
    .toSorted((a, b) => a - b)
}

const look = (page: Page, state: 'hidden' | 'visible'): Promise<unknown> =>
  page.evaluate(
    `Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true })
     document.dispatchEvent(new Event('visibilitychange'))`,
  )
