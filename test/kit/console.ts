// A console to try in a real browser: a server whose model answers when the test lets it, a project, an agent.
import assert from 'node:assert/strict'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import type { Agent } from '../../src/kernel/agent.ts'
import type { Run } from '../../src/kernel/run.ts'
import { findViolations } from './axe.ts'
import { openContext, signIn, startBrowser, type Watched, watch } from './browser.ts'
import { createUnusedDatabase } from './database.ts'
import { type FakeModel, type Plan, startFakeModel } from './fake-model.ts'
import { isLong } from './how-many.ts'
import { type Cleanup, type Muster, startMuster } from './process.ts'
import { until } from './until.ts'

const MAIN_LOOKS = [
  { colorScheme: 'dark', width: 1_280, height: 800 },
  { colorScheme: 'light', width: 390, height: 800 },
] as const
const OTHER_LOOKS = [
  { colorScheme: 'light', width: 1_280, height: 800 },
  { colorScheme: 'dark', width: 390, height: 800 },
] as const
const LOOKS = isLong ? [...OTHER_LOOKS, ...MAIN_LOOKS] : MAIN_LOOKS

export interface ConsoleKit {
  databaseUrl: string
  muster: Muster
  browser: Browser
  model: FakeModel
  /** The cookie of the instance admin. */
  cookie: string
  project: string
  /** An agent whose model follows the plan that is its input. */
  agent: Agent
  /** The API's path of the project. */
  path: string
  api<Answer>(route: string, body?: object): Promise<Answer>
  /** Opens an address below the project's, in a page of its own. */
  open(t: Cleanup, place: string, who?: string): Promise<Watched>
  goTo(page: Page, place: string): Promise<void>
  readRun(id: string): Promise<Run>
  trigger(plan: Plan, more?: object, of?: Agent): Promise<Run>
  /** Triggers the agent and waits for the end of the run. */
  play(plan: Plan, more?: object): Promise<Run>
  /** Invites a person with this role. Returns their cookie. */
  invite(role: string): Promise<string>
  /** Fails on any violation that axe finds: dark on a desktop, light on a phone; `npm run test:long` has all four. */
  checkLooks(page: Page, place: string, isReady: (page: Page) => Promise<unknown>): Promise<void>
}

export async function startConsole(t: Cleanup, env: Record<string, string> = {}): Promise<ConsoleKit> {
  const model = await startFakeModel(t)
  const databaseUrl = await createUnusedDatabase()
  const muster = await startMuster(t, { databaseUrl, env: { MUSTER_DEMO: 'off', ...env } })
  const browser = await startBrowser(t)
  const api = async <Answer>(route: string, body?: object): Promise<Answer> => {
    const answer = await muster.call<Answer>(route, body === undefined ? {} : { body })
    assert.ok(answer.status < 300, `${route}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  await api('POST /api/providers', { name: 'planned', kind: 'openai-compatible', base_url: model.url })
  const signedIn = await muster.call(`GET ${new URL(muster.signInLink()).pathname}`, { token: null })
  const cookie = cookieOf(signedIn.headers)
  const { id: project } = await api<{ id: string }>('POST /api/projects', { name: 'Garden' })
  const path = `/api/projects/${project}`
  const agent = await api<Agent>(`POST ${path}/agents`, {
    name: 'Gardener',
    prompt: 'Tend the garden.',
    model: { provider: 'planned', name: 'any' },
    tools: ['object_search'],
  })
  const goTo = async (page: Page, place: string): Promise<void> => {
    await page.goto(`${muster.url}/projects/${project}${place}`)
  }
  const readRun = (id: string): Promise<Run> => api<Run>(`GET ${path}/runs/${id}`)
  const trigger = async (plan: Plan, more: object = {}, of = agent): Promise<Run> => {
    const answer = await muster.call<Run>(`POST ${path}/agents/${of.id}/trigger`, {
      body: { input: plan, ...more },
      headers: { prefer: 'respond-async' },
    })
    assert.equal(answer.status, 202)
    return answer.body
  }
  /** The pages of one person share a context, because a new context loads every file of the console again. */
  const contexts = new Map<string, BrowserContext>()
  return {
    databaseUrl,
    muster,
    browser,
    model,
    cookie,
    project,
    agent,
    path,
    api,
    goTo,
    readRun,
    trigger,
    open: async (test, place, who = cookie) => {
      const context = contexts.get(who) ?? (await openContext(browser, { origin: muster.url }))
      contexts.set(who, context)
      await signIn(context, muster.url, who)
      const watched = await watch(context, muster.url)
      test.after(() => leave(watched.page))
      await goTo(watched.page, place)
      return watched
    },
    play: async (plan, more) => {
      const { id } = await trigger(plan, more)
      await until(async () => (await readRun(id)).completed_at !== null, 'the run ends')
      return readRun(id)
    },
    invite: async (role) => {
      const email = `${role}@example.com`
      const { invitation_url: link } = await api<{ invitation_url: string }>(`POST ${path}/members`, { email, role })
      const token = new URL(link).pathname.split('/').at(-1)
      const accepted = await muster.call(`POST /api/invitations/${token}/accept`, {
        body: { name: role, password: 'long enough' },
        token: null,
        headers: { origin: muster.url },
      })
      return cookieOf(accepted.headers)
    },
    checkLooks: async (page, place, isReady) => {
      for (const { colorScheme, ...viewport } of LOOKS) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize(viewport)
        await goTo(page, place)
        await isReady(page)
        assert.deepEqual(await findViolations(page), [], `${place} ${colorScheme} ${viewport.width}`)
      }
    },
  }
}

/** Closes a page, and leaves nothing in the browser that the next page of this person could find. */
async function leave(page: Page): Promise<void> {
  if (page.isClosed()) return
  await page.evaluate('localStorage.clear(); sessionStorage.clear()').catch(() => undefined)
  await page.close()
}

const cookieOf = (headers: Headers): string => headers.getSetCookie()[0]?.split(';')[0] ?? assert.fail('no cookie')
