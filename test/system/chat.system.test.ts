// useChat of @ai-sdk/react in a real browser: the page of examples/chat, bundled and served like a front end, against a
// real server.
import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { createFrontEnd } from '../../examples/chat/front-end.ts'
import type { AgentRunAnswer } from '../../src/kernel/supervisor.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, openPage, startBrowser } from '../kit/browser.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type NodeModel, startNodeModel } from '../kit/node-model.ts'
import { type Muster, startMuster } from '../kit/process.ts'
import { finish } from '../kit/supervisor.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const skip = noBrowser

let muster: Muster
let model: NodeModel
let browser: Browser
let origin: string
let headers: Record<string, string>

before(async () => {
  if (skip) return
  model = await startNodeModel(wholeFile, (name, prompt) => {
    if (name === 'supervisor') return { say: [JSON.stringify(decisionOn(prompt))] }
    if (name === 'escalation') return { say: ['Red ', 'or blue?'] }
    return finalTo(prompt)
  })
  muster = await startMuster(wholeFile, { databaseUrl: await createUnusedDatabase(), env: { MUSTER_DEMO: 'off' } })
  await ask('POST /api/providers', { name: 'node', kind: 'openai-compatible', base_url: model.url })
  const { id } = await ask<{ id: string }>('POST /api/projects', { name: 'Chats' })
  headers = { 'x-project-id': id }
  const part = (name: string, prompt_id: string) => ({ prompt_id, model: { provider: 'node', name } })
  const system = await muster.call<object>(`GET /api/projects/${id}/systems/blue`)
  const { variant: _, updated_at: __, ...config } = system.body as Record<string, unknown> // the route's answer
  const put = await muster.call(`PUT /api/projects/${id}/systems/blue`, {
    body: {
      ...config,
      supervisor: part('supervisor', 'supervisor_planner'),
      finalizer: part('finalizer', 'finalizer_agent'),
      escalation: part('escalation', 'hitl_escalation_handler'),
    },
  })
  assert.equal(put.status, 200, put.text)
  const { key } = await ask<{ key: string }>(`POST /api/projects/${id}/keys`, { name: 'front end', role: 'member' })
  const server = await createFrontEnd({ musterUrl: muster.url, key })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a server on TCP has a port
  browser = await startBrowser(wholeFile)
})

/** A task that asks for a colour needs a person, until a person has answered. */
function decisionOn(prompt: string): object {
  const mustAsk = prompt.includes('Paint') && !prompt.includes('A person was asked meanwhile')
  return { ...finish(), action: mustAsk ? 'escalate' : 'finish' }
}

let failures = 0
function finalTo(prompt: string) {
  if (prompt.includes('Count')) return { say: ['One, ', 'two, ', 'three.'], gate: 'count' }
  if (prompt.includes('Paint')) return { say: ['It is ', 'red.'] }
  if (prompt.includes('Stumble')) {
    const isFirst = failures++ === 0
    return isFirst ? { say: ['I think that ', 'it '], ending: 'cut' as const } : { say: ['It ', 'stands.'] }
  }
  if (prompt.includes('Refuse')) return { say: [], ending: 'refuse' as const }
  return { say: ['Paris is ', 'the capital ', 'of France.'], gate: 'capital' }
}

describe('useChat in a browser', { skip }, () => {
  test('a page renders an answer as it is streamed', async (t) => {
    model.hold('capital')
    const { page, troubles } = await openChat(t, 'streamed')
    await say(page, 'What is the capital of France?')
    await shows(page, ['What is the capital of France?', 'Paris is'])
    assert.equal(await statusOf(page), 'streaming')
    model.release('capital')
    await shows(page, ['What is the capital of France?', 'Paris is the capital of France.'])
    await ready(page)
    const { result } = await readRun(await lastRun(page))
    assert.deepEqual([result.status, result.output?.content], ['DONE', 'Paris is the capital of France.'])
    assert.deepEqual(troubles, [])
  })

  test('the answer to an escalation continues the same chat and the same run', async (t) => {
    const { page, troubles } = await openChat(t, 'escalated')
    await say(page, 'Paint it.')
    await page.getByText('Your answer is needed.').waitFor()
    await shows(page, ['Paint it.', 'Red or blue?'])
    await ready(page)
    const runId = await lastRun(page)
    assert.equal((await readRun(runId)).result.status, 'ESCALATE')
    await say(page, 'Red, please.')
    await shows(page, ['Paint it.', 'Red or blue?', 'Red, please.', 'It is red.'])
    await ready(page)
    assert.equal(await lastRun(page), runId)
    assert.equal((await readRun(runId)).result.status, 'DONE')
    assert.deepEqual(troubles, [])
  })

  test('a reload in the middle picks the stream up again', async (t) => {
    model.hold('count')
    const { page, troubles } = await openChat(t, 'reloaded')
    await say(page, 'Count.')
    await shows(page, ['Count.', 'One,'])
    const runId = await lastRun(page)
    await page.reload()
    await page.locator('main[data-status=streaming]').waitFor()
    await shows(page, ['Count.', 'One,'])
    model.release('count')
    await shows(page, ['Count.', 'One, two, three.'])
    await ready(page)
    assert.equal(await lastRun(page), runId)
    assert.deepEqual(troubles, [])
  })

  test('a page shows the text once although the provider cut its stream', async (t) => {
    const { page, troubles } = await openChat(t, 'cut')
    await say(page, 'Stumble.')
    await shows(page, ['Stumble.', 'It stands.'])
    await ready(page)
    assert.equal(failures, 2)
    assert.deepEqual(troubles, [])
  })

  test('stop only disconnects: the run goes on to its end', async (t) => {
    model.hold('count')
    const { page, troubles } = await openChat(t, 'stopped')
    await say(page, 'Count.')
    await shows(page, ['Count.', 'One,'])
    const runId = await lastRun(page)
    await page.getByRole('button', { name: 'Stop' }).click()
    await ready(page)
    model.release('count')
    await until(async () => (await readRun(runId)).result.status === 'DONE', 'the run is done')
    assert.equal((await readRun(runId)).result.output?.content, 'One, two, three.')
    assert.deepEqual(troubles, [])
  })

  test('a failure is shown in plain words', async (t) => {
    const { page, troubles } = await openChat(t, 'refused')
    await say(page, 'Refuse it.')
    assert.match((await page.getByRole('alert').textContent()) ?? '', /I will not\./)
    assert.deepEqual(troubles, [])
  })
})

async function openChat(t: { after(clean: () => Promise<void>): void }, id: string) {
  const watched = await openPage(browser, { origin })
  t.after(() => watched.context.close())
  await watched.page.goto(`${origin}/?chat=${id}`)
  await watched.page.locator('main').waitFor()
  return watched
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

/** Waits until the messages on the page are these, and no others. */
async function shows(page: Page, texts: readonly string[]): Promise<void> {
  const paragraphs = page.locator('article p')
  const read = async (): Promise<string[]> => (await paragraphs.allTextContents()).map((text) => text.trim())
  const holds = async (): Promise<boolean> => JSON.stringify(await read()) === JSON.stringify(texts)
  await until(holds, () => `the page shows ${JSON.stringify(texts)}`, 15_000).catch(async (error) => {
    assert.deepEqual(await read(), texts)
    throw error
  })
}

const ready = (page: Page): Promise<void> => page.locator('main[data-status=ready]').waitFor()
const statusOf = (page: Page) => page.locator('main').getAttribute('data-status')
const lastRun = async (page: Page): Promise<string> =>
  (await page.locator('article[data-role=assistant]').last().getAttribute('data-run')) ?? assert.fail()

async function readRun(runId: string): Promise<AgentRunAnswer> {
  const { status, body, text } = await muster.call<AgentRunAnswer>(`GET /v1/agent/runs/${runId}`, { headers })
  assert.equal(status, 200, text)
  return body
}

async function ask<Body>(route: string, body: object): Promise<Body> {
  const answer = await muster.call<Body>(route, { body })
  assert.ok(answer.status < 300, answer.text)
  return answer.body
}
