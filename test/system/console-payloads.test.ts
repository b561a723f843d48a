// Text of people, models and tools that tries to become code, in every field and stream: nothing of it runs, opens a
// dialog or loads anything, and each text is shown letter by letter on at least one page.
import assert from 'node:assert/strict'
import { before, describe } from 'node:test'
import type { Request } from 'playwright-core'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, openPage, type Watched } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import {
  type Field,
  type HostileModels,
  type HostileProject,
  makeHostileProject,
  type Place,
  type Words,
} from '../kit/hostile-project.ts'
import { isLong } from '../kit/how-many.ts'
import { type FixtureHttpServer, startMcpHttp } from '../kit/mcp-http.ts'
import { type NodeAnswer, startNodeModel } from '../kit/node-model.ts'
import { asName, DOSES, lettersOf, PAYLOADS } from '../kit/payloads.ts'
import type { Cleanup } from '../kit/process.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
const PATIENCE_MS = 60_000
let kit: ConsoleKit
let models: HostileModels
let mcp: FixtureHttpServer

before(async () => {
  if (skip) return
  kit = await startConsole({ after: atEnd })
  mcp = await startMcpHttp()
  models = await startModels()
})

/** Models of the project that was made last. */
async function startModels(): Promise<HostileModels> {
  let words: Words = { text: '', todo: '', question: '', title: '', description: '', report: '' }
  const { url } = await startNodeModel({ after: atEnd }, (name, prompt, call) => answerOf(words, name, prompt, call))
  await kit.api('POST /api/providers', { name: 'hostile', kind: 'openai-compatible', base_url: url })
  return {
    provider: 'hostile',
    speak: (given) => {
      words = given
    },
  }
}

function answerOf(words: Words, name: string, prompt: string, call: number): NodeAnswer {
  const json = (value: object): NodeAnswer => ({ say: [JSON.stringify(value)] })
  const { title, description } = words
  switch (name) {
    case 'refuse':
      return { say: [], ending: 'refuse', message: words.text }
    case 'queen':
      return call % 2 === 0
        ? json({ subtasks: [{ id: 'a', title, description, depends_on: [], workers: 1 }] })
        : json({ acceptable: true, problems: [], report: words.report })
    case 'supervisor': {
      const mustAsk = prompt.includes('Ask me') && !prompt.includes('A person was asked meanwhile')
      const plan = [{ id: '1', description: words.todo, status: 'DONE', owner_agent: 'research_agent' }]
      return json({ plan, action: mustAsk ? 'escalate' : 'finish' })
    }
    case 'escalation':
      return { say: words.question.split(/(?<= )/) }
    default:
      return { say: words.text.split(/(?<= )/) }
  }
}

/** A page, and all that it must not do. Its texts are kept, to find the payloads in them. */
async function watch(t: Cleanup): Promise<Watched & { texts: string[]; isQuiet: () => boolean }> {
  const watched = await openPage(kit.browser, { origin: kit.muster.url, cookie: kit.cookie })
  const { page, context, troubles } = watched
  t.after(() => context.close())
  const open = new Set<Request>()
  page.on('request', (request) => {
    if (!/\/(events|stream)$/.test(new URL(request.url()).pathname)) open.add(request)
    const isOwn = /^(document|script|stylesheet|font|fetch|xhr|eventsource|preflight)$/.test(request.resourceType())
    if (!isOwn && !request.url().startsWith('data:')) troubles.push(`loaded ${request.resourceType()} ${request.url()}`)
  })
  page.on('requestfinished', (request) => open.delete(request))
  page.on('requestfailed', (request) => open.delete(request))
  return { ...watched, texts: [], isQuiet: () => open.size === 0 }
}

type Seen = Awaited<ReturnType<typeof watch>>

/** Waits for the content, unfolds it, and looks for elements that no page makes. */
async function look({ page, troubles, texts, isQuiet }: Seen): Promise<void> {
  await page.getByRole('main').waitFor()
  // One answer may lead to the next request, so the page must be quiet twice.
  let quietTimes = 0
  await until(
    async () => {
      quietTimes = isQuiet() && (await page.evaluate(IS_LOADED)) === true ? quietTimes + 1 : 0
      return quietTimes > 1
    },
    () => `${page.url()} is loaded`,
    PATIENCE_MS,
  )
  for (let round = 0; round < 3 && Number(await page.evaluate(UNFOLD)) > 0; round++) await page.waitForTimeout(50)
  const found = await page.evaluate<{ text: string; strange: string[]; isSet: boolean }>(READ)
  texts.push(lettersOf(found.text))
  for (const each of found.strange) troubles.push(`${page.url()} has ${each}`)
  if (found.isSet) troubles.push(`${page.url()} ran a payload`)
}

const IS_LOADED = `document.querySelector('h1') !== null && document.querySelector('[aria-label="Loading"]') === null`

/** Opens all folded parts. Returns how many there were. */
const UNFOLD = `(() => {
  const folded = [...document.querySelectorAll(':is(main, [role=dialog]) details:not([open])')]
  for (const each of folded) each.open = true
  const buttons = [...document.querySelectorAll(':is(main, [role=dialog]) button')].filter((each) =>
    (each.getAttribute('aria-expanded') === 'false' && !each.hasAttribute('aria-haspopup')) ||
    each.textContent === 'Show all' || each.textContent === 'More')
  for (const each of buttons) each.click()
  return folded.length + buttons.length
})()`

/** The text of the page and of its fields, and elements or attributes that only a payload makes. */
const READ = `(() => {
  const fields = [...document.querySelectorAll('input, textarea')].map(({ value }) => value)
  const said = [...document.querySelectorAll('[aria-label], [title]')].flatMap((each) =>
    [each.getAttribute('aria-label') ?? '', each.getAttribute('title') ?? ''])
  const isBad = (each) =>
    each.matches('img, iframe, object, embed, base, math, form[action], meta[http-equiv], animate, plaintext, xmp') ||
    [...each.attributes].some(({ name, value }) =>
      /^on/.test(name) || /^(href|src|action|formaction|xlink:href|srcdoc|data)$/.test(name) &&
      !/^(https?:|mailto:|\\/(?!\\/)|#|data:image\\/svg)/.test(value))
  const strange = [...document.querySelectorAll('*')].filter(isBad).map((each) => each.outerHTML.slice(0, 200))
  const isSet = '__xss' in window && !(window.__xss instanceof Element)
  return { text: [document.body.textContent, ...fields, ...said].join(' '), strange, isSet }
})()`

async function visit(seen: Seen, project: HostileProject, places: readonly Place[]): Promise<void> {
  const { page } = seen
  for (const { address, buttons = [], opens } of places) {
    await page.goto(`${kit.muster.url}/projects/${project.id}${address}`)
    await look(seen)
    if (opens !== undefined) {
      await page.getByRole('main').getByRole('button').filter({ hasText: opens }).first().click()
      await page.getByRole('dialog').waitFor()
      await look(seen)
      await page.keyboard.press('Escape')
    }
    for (const name of buttons) {
      const button = page.getByRole('main').getByRole('button', { name, exact: true }).first()
      await button.click()
      await page
        .getByRole('dialog')
        .or(page.getByRole('menu'))
        .or(page.getByRole('button', { name: 'Save' }))
        .first()
        .waitFor()
      await look(seen)
      await page.keyboard.press('Escape')
    }
  }
  await page.goto(kit.muster.url)
  await look(seen)
}

/** The fields whose text is on no page. */
const missing = ({ texts }: Seen, fields: ReadonlyMap<string, Field>): string[] =>
  [...fields].flatMap(([field, { mark, payloads, isMarkdown }]) => {
    const wanted = isMarkdown ? payloads.slice(1, 2) : payloads
    const onPage = texts.filter((text) => text.includes(lettersOf(mark)))
    if (onPage.length === 0) return [`${field} is on no page`]
    const isShown = onPage.some((text) => wanted.every((payload) => forms(payload).some((form) => text.includes(form))))
    return isShown ? [] : [`${field} is not shown letter by letter`]
  })

/** A text as it is, and as it stands in JSON. */
const forms = (text: string): string[] => [lettersOf(text), lettersOf(JSON.stringify(text).slice(1, -1))]

/** Chats with the supervisor: the message, the streamed answer, its summary, and a question. */
async function chat(seen: Seen, project: HostileProject): Promise<void> {
  const { page } = seen
  await page.goto(`${kit.muster.url}/projects/${project.id}/playground`)
  const send = async (text: string): Promise<void> => {
    await page.getByLabel('Message', { exact: true }).fill(text)
    await page.getByRole('button', { name: 'Send' }).click()
  }
  await send(`${project.said} mark-chat.message.`)
  await page.getByRole('button', { name: 'What happened' }).waitFor()
  await look(seen)
  await page.getByRole('heading', { name: /^Run of the supervisor/ }).waitFor()
  await look(seen)
  await send('Ask me')
  await page.getByRole('region', { name: 'Your answer is needed' }).getByRole('button', { name: 'Answer' }).waitFor()
  await look(seen)
}

/** The text of a run as its tokens arrive, and after the end. */
async function stream(seen: Seen, dose: readonly string[], number: number): Promise<void> {
  const { page } = seen
  const gate = `stream ${number}`
  kit.model.hold(gate)
  const said = dose.map((payload) => `${payload} and \n\n`).join('')
  const run = await kit.trigger({ tag: gate, steps: [{ say: `${said}${said} the end`, gate }] })
  await kit.goTo(page, `/runs/${run.id}`)
  const isWritten = async (): Promise<boolean> =>
    lettersOf((await page.locator('main').textContent()) ?? '').includes(lettersOf(dose[1] ?? ''))
  await until(isWritten, 'the first tokens are shown', PATIENCE_MS)
  await look(seen)
  kit.model.release(gate)
  await page.getByText(/finished in/).waitFor()
  await until(isWritten, 'the HTML in the text is shown', PATIENCE_MS)
  await look(seen)
}

/** The search finds things by their texts. */
async function search(seen: Seen): Promise<void> {
  const { page } = seen
  await page.keyboard.press('Control+k')
  await page.getByRole('textbox', { name: 'Search or jump' }).fill('mark-')
  await page.getByRole('button', { name: /mark-/ }).first().waitFor()
  await look(seen)
  await page.keyboard.press('Escape')
}

/** Visits every page and dialog. */
async function tryOut(t: Cleanup, dose: readonly string[], number: number): Promise<void> {
  const project = await makeHostileProject(kit, dose, number, { models, mcp })
  const seen = await watch(t)
  await visit(seen, project, project.places)
  await search(seen)
  await chat(seen, project)
  await stream(seen, dose, number)
  assert.deepEqual(seen.troubles, [])
  assert.deepEqual(missing(seen, project.fields), [])
}

describe('payloads in every text', { skip }, () => {
  test('there are forty payloads, and no two are alike', () => {
    assert.equal(new Set(PAYLOADS).size, 40)
  })

  test('a dose of five in every field, and in a stream, runs nothing, loads nothing and is shown as it is', async (t) => {
    const project = await makeHostileProject(kit, DOSES[1] ?? [], 1, { models, mcp })
    const seen = await watch(t)
    const main = project.places.filter(({ isMain }) => isMain)
    await visit(seen, project, main)
    await stream(seen, DOSES[1] ?? [], 1)
    assert.deepEqual(seen.troubles, [])
    const lost = new Set(missing(seen, project.fields).map((line) => line.split(' ')[0]))
    const shown = [...project.fields.keys()].filter((field) => !lost.has(field))
    assert.ok(shown.length > 20, `only ${shown.join(', ')} are shown`)
  })

  inSystem('all forty in every field and stream run nothing, load nothing and are shown as they are', async (t) =>
    tryOut(t, PAYLOADS, DOSES.length),
  )

  // A payload that swallows the text after it would hide the others.
  for (const [number, dose] of isLong ? DOSES.entries() : []) {
    inSystem(`dose ${number} in every field and stream`, async (t) => tryOut(t, dose, number))
  }

  inSystem('each of the forty is shown in lists as the name of a thing', async (t) => {
    const { id } = await kit.api<{ id: string }>('POST /api/projects', { name: 'Names' })
    const path = `/api/projects/${id}`
    for (const [place, payload] of PAYLOADS.entries()) {
      const name = `${asName(payload)} ${place}.`
      await kit.api(`POST ${path}/agents`, { name, role: name, model: { provider: 'offline', name: 'offline' } })
      await kit.api(`POST ${path}/objects`, { type: name, key: name, properties: { [name]: name } })
      await kit.api(`POST ${path}/tasks`, { title: name, description: name })
      await kit.api(`POST ${path}/flows`, { name, root: { type: 'task', agent: name, input: place } })
      await kit.api(`POST ${path}/keys`, { name, role: 'viewer' })
    }
    const seen = await watch(t)
    for (const place of ['agents', 'objects', 'inbox', 'flows', 'organisation', 'settings/keys', 'settings/audit']) {
      await seen.page.goto(`${kit.muster.url}/projects/${id}/${place}`)
      await look(seen)
      const text = seen.texts.at(-1) ?? ''
      const lost = PAYLOADS.filter((payload, number) => !text.includes(lettersOf(`${asName(payload)} ${number}.`)))
      if (place !== 'settings/audit' && place !== 'organisation') assert.deepEqual(lost, [], place)
    }
    assert.deepEqual(seen.troubles, [])
  })
})
