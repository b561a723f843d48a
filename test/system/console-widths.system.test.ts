// Every page of the console over the demo, in the widths of a phone, a tablet and a desktop.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
const WIDTHS = [1_280, 768, 390]
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd }, { MUSTER_DEMO: 'on' })
})

describe('the pages of the demo', { skip }, () => {
  test('none scrolls sideways on a phone, a tablet or a desktop', async (t) => {
    const { id, places } = await placesOfDemo()
    const { page, troubles } = await kit.open(t, '/runs')
    places.push(await chat(page, id))
    const wide: string[] = []
    for (const place of places) {
      await page.goto(kit.muster.url + (place === '' ? '/' : `/projects/${id}${place}`))
      await page.getByRole('heading', { level: 1 }).first().waitFor()
      await page.waitForLoadState('load')
      await untilSettled(page)
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 })
        // Charts follow a new width a moment later.
        const isNarrow = async () => (await widerBy(page)) === ''
        await until(isNarrow, 'nothing is too wide', 2_000).catch(async () => {
          wide.push(`${place || 'home'} at ${width}: ${await widerBy(page)}`)
        })
      }
    }
    assert.deepEqual(wide, [])
    assert.deepEqual(troubles, [])
  })
})

/** A word that no line can hold. */
const LONG = 'incomprehensibilities'.repeat(9)

/** A chat with an answer. Returns its place. */
async function chat(page: Page, project: string): Promise<string> {
  await page.goto(`${kit.muster.url}/projects/${project}/playground`)
  await page.getByRole('textbox', { name: 'Message' }).fill(`Look at https://example.com/${LONG} and at ${LONG}`)
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('link', { name: 'Open the run' }).waitFor()
  return page.url().split(`/projects/${project}`)[1] ?? assert.fail(page.url())
}

/** The addresses of all pages below the demo, once there is a thing for each. Home is an empty one. */
async function placesOfDemo(): Promise<{ id: string; places: string[] }> {
  const { items } = await kit.api<{ items: { id: string; name: string }[] }>('GET /api/projects')
  const id = items.find(({ name }) => name === 'Demo')?.id ?? assert.fail('there is no demo')
  const first = async (list: string): Promise<string> => {
    let found: string | undefined
    await until(async () => {
      found = (await kit.api<{ items: { id: string }[] }>(`GET /api/projects/${id}${list}`)).items[0]?.id
      return found !== undefined
    }, `the demo has one of ${list}`)
    return found ?? assert.fail(list)
  }
  const agents = `POST /api/projects/${id}/agents`
  const named = await kit.api<{ id: string }>(agents, { name: LONG, prompt: LONG, competencies: [LONG.slice(0, 60)] })
  await kit.api(`POST /api/projects/${id}/objects`, { type: LONG, key: LONG, properties: { [LONG]: LONG } })
  await kit.api(`POST /api/projects/${id}/tasks`, { title: LONG, description: LONG })
  await kit.api(`POST /api/projects/${id}/keys`, { name: LONG, role: 'viewer' })
  await kit.api(`POST /api/projects/${id}/agents/${named.id}/trigger`, { input: LONG })
  const [flowRun, flow, run, ended, agent, object, anEval] = [
    await first('/flow-runs'),
    await first('/flows'),
    await first('/runs?status=failed'),
    await first('/runs?status=completed'),
    await first('/agents'),
    await first('/objects'),
    await first('/evals'),
  ]
  const tabs = ['overview', 'triggers', 'runs', 'budget', 'log']
  const sections = ['providers', 'mcp', 'keys', 'members', 'limits', 'audit', 'account']
  const views = ['timeline', 'split', 'graph', 'tasks']
  return {
    id,
    places: [
      '',
      ...['flows', 'runs', 'inbox', 'organisation', 'agents', 'prompts', 'playground', 'evals', 'objects'].map(
        (page) => `/${page}`,
      ),
      ...[
        '/flows/new',
        `/flows/definitions/${flow}`,
        '/agents/new',
        `/agents/${agent}/edit`,
        `/organisation?agent=${agent}`,
      ],
      ...views.map((view) => `/flows/${flowRun}?view=${view}`),
      ...[`/runs/${run}`, `/runs/${run}/compare/${ended}`, `/objects/${object}`, `/evals/${anEval}`],
      ...tabs.map((tab) => `/agents/${agent}?tab=${tab}`),
      ...sections.map((section) => `/settings/${section}`),
    ],
  }
}

/** Skeletons stand where data is still to come. */
const untilSettled = (page: Page): Promise<void> =>
  until(async () => (await page.locator('.mantine-Skeleton-root').count()) === 0, `${page.url()} is read`)

/** The first elements that reach beyond the window, or nothing. */
const widerBy = (page: Page): Promise<string> =>
  page.evaluate<string>(`(() => {
    const over = document.documentElement.scrollWidth - document.documentElement.clientWidth
    if (over <= 0) return ''
    const scrolls = (each) => each && (getComputedStyle(each).overflowX !== 'visible' || scrolls(each.offsetParent))
    const beyond = [...document.querySelectorAll('body *')].filter((each) =>
      each.getBoundingClientRect().right > innerWidth + 0.5 && !scrolls(each.offsetParent ?? each.parentElement))
    return over + ' px, ' + beyond.slice(0, 3).map((each) => each.tagName + '.' + each.className).join(' > ')
  })()`)
