// The inbox in a real browser: what waits for people is seen, decided and answered.
import assert from 'node:assert/strict'
import { before, describe } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import type { Agent } from '../../src/kernel/agent.ts'
import type { GraphObject } from '../../src/kernel/object.ts'
import type { Run } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, openPage, type Watched } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { startFakeModel } from '../kit/fake-model.ts'
import { serveLocally } from '../kit/local-server.ts'
import { type Cleanup, type Muster, startMuster } from '../kit/process.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

describe('the inbox in a browser', { skip }, () => {
  test('a suggestion with its diff is approved, another rejected with a reason, and a question answered', async (t) => {
    const home = await makeProject()
    const ada = await home.object({ name: 'Ada', email: 'ADA@X.ORG', born: 1815 })
    const bob = await home.object({ name: 'Bob' })
    const steward = await home.suggest(
      'Steward',
      ada,
      { email: 'ada@x.org', phone: '+44' },
      'Mail to capitals bounces.',
    )
    await home.suggest('Rival', bob, { name: 'Robert' }, 'It sounds better.')
    const asked = await home.run('Asker', [{ name: 'ask_human', args: { question: 'Which colour?\nRed or blue.' } }])
    const { page, troubles } = await home.open(t)
    await page.getByRole('heading', { name: 'Inbox', level: 1 }).waitFor()

    const card = cardOf(page, 'Update Person Ada')
    await card.getByText('Mail to capitals bounces.').waitFor()
    await card.getByRole('link', { name: 'Steward' }).waitFor()
    assert.deepEqual(await linesOf(card.getByRole('list', { name: 'Changes' })), [
      '~ email changed: "ADA@X.ORG" "ada@x.org"',
      '+ phone added: "+44"',
    ])
    await card.getByText('2 properties stay').waitFor()
    await card.getByRole('button', { name: 'Approve' }).click()
    await card.getByText('It was approved').waitFor()
    const after = await kit.api<GraphObject>(`GET ${home.path}/objects/${ada.id}`)
    assert.deepEqual(after.properties, { name: 'Ada', email: 'ada@x.org', born: 1815, phone: '+44' })
    assert.deepEqual([after.actor_type, after.actor_id], ['agent', steward.id])

    const other = cardOf(page, 'Update Person Robert')
    await other.getByRole('button', { name: 'Reject' }).click()
    const dialog = page.getByRole('dialog', { name: 'Reject this suggestion?' })
    await dialog.getByLabel('Reason').fill('Bob likes Bob')
    await dialog.getByRole('button', { name: 'Reject' }).click()
    await other.getByText('It was rejected: Bob likes Bob').waitFor()

    const question = cardOf(page, 'Which colour?')
    await question.getByText('Red or blue.').waitFor()
    await question.getByLabel('Your answer').fill('Blue')
    await question.getByRole('button', { name: 'Answer' }).click()
    await question.getByText('It was answered: Blue').waitFor()
    await until(async () => (await home.readRun(asked.id)).status === 'completed', 'the run goes on')
    assert.deepEqual(troubles, [])
  })

  inSystem('j and k move, a approves, r rejects, and nothing of that while typing', async (t) => {
    const home = await makeProject()
    for (const name of ['One', 'Two', 'Three']) {
      await home.suggest(`Agent ${name}`, await home.object({ name }), { seen: true }, 'So.')
    }
    await home.run('Asker', [{ name: 'ask_human', args: { question: 'Really?' } }])
    const { page, troubles } = await home.open(t)
    // The question is more urgent, so it comes first; then the newest suggestion.
    await cardOf(page, 'Update Person One').waitFor()
    const current = page.locator('li[aria-current="true"]')
    const nameOfCurrent = () => current.getAttribute('aria-label')
    await page.keyboard.press('j')
    assert.equal(await nameOfCurrent(), 'Really?')
    await page.keyboard.press('a')
    await page.keyboard.type('jkar')
    assert.equal(await page.getByLabel('Your answer').inputValue(), 'jkar')
    assert.equal(await nameOfCurrent(), 'Really?')
    await page.getByRole('heading', { name: 'Inbox' }).click()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    assert.equal(await nameOfCurrent(), 'Update Person Three')
    await page.keyboard.press('a')
    await cardOf(page, 'Update Person Three').getByText('It was approved').waitFor()
    await until(async () => (await nameOfCurrent()) === 'Update Person Two', 'the next card is the current one')
    await page.keyboard.press('r')
    await page.getByRole('dialog').getByLabel('Reason').fill('No')
    await page.keyboard.press('Enter')
    await cardOf(page, 'Update Person Two').getByText('It was rejected: No').waitFor()
    await until(async () => (await nameOfCurrent()) === 'Update Person One', 'the last card is the current one')
    const item = new URL(page.url()).searchParams.get('item')
    const tasks = await home.tasks('kind=suggestion&status=pending')
    assert.deepEqual(
      tasks.map(({ id }) => id),
      [item],
    )
    assert.deepEqual(troubles, [])
  })

  inSystem('several are approved at once; each that cannot be says why at its own place', async (t) => {
    const home = await makeProject()
    const [moved, still, lost] = [
      await home.object({ name: 'Moved' }),
      await home.object({ name: 'Still' }),
      await home.object({ name: 'Lost' }),
    ]
    await home.suggest('One', moved, { n: 1 }, 'Why not.')
    await home.suggest('Two', still, { n: 1 }, 'Why not.')
    await home.suggest('Three', lost, { n: 1 }, 'Why not.')
    const { page, troubles } = await home.open(t)
    await page.getByLabel('Select all').check()
    await page.getByText('3 selected').waitFor()
    // Meanwhile the world moves on.
    await kit.api(`PATCH ${home.path}/objects/${moved.id}`, { properties: { n: 2 } })
    const [taken] = (await home.tasks('kind=suggestion&status=pending')).filter(({ title }) => title.endsWith('Lost'))
    await kit.api(`POST ${home.path}/tasks/${taken?.id}/reject`, { reason: 'I was first' })
    await page.getByRole('button', { name: 'Approve selected' }).click()
    await cardOf(page, 'Update Person Still').getByText('It was approved').waitFor()
    const stale = cardOf(page, 'Update Person Moved')
    await stale.getByText('It can only be rejected.').waitFor()
    assert.match((await stale.getByRole('alert').textContent()) ?? '', /moved from version 1 to 2/)
    assert.equal(await stale.getByRole('button', { name: 'Approve' }).count(), 0)
    const elsewhere = cardOf(page, 'Update Person Lost')
    await elsewhere.getByText('It was rejected: I was first').waitFor()
    await elsewhere.getByText('Somebody else decided this meanwhile.').waitFor()
    await stale.getByRole('button', { name: 'Reject' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click()
    await stale.getByText('It was rejected.').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('a question that somebody else has answered meanwhile says so, and keeps the typed words', async (t) => {
    const home = await makeProject()
    await home.run('Asker', [{ name: 'ask_human', args: { question: 'Tea or coffee?' } }])
    const { page, troubles } = await home.open(t)
    const card = cardOf(page, 'Tea or coffee?')
    await card.getByLabel('Your answer').fill('Tea')
    const [task] = await home.tasks('kind=escalation')
    await kit.api(`PATCH ${home.path}/tasks/${task?.id}`, { status: 'completed', result: 'Coffee' })
    await card
      .getByRole('button', { name: 'Answer' })
      .click({ timeout: 2_000 })
      .catch(() => {})
    await card.getByText('It was answered: Coffee').waitFor()
    await card.getByText('Somebody else decided this meanwhile.').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('a budget is topped up, a stuck agent is helped, and work for people is done', async (t) => {
    const home = await makeProject({ stuck_retry_limit: 0 })
    const refusal = await serveLocally({ after: atEnd }, (_request, response) => {
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}')
    })
    await kit.api('POST /api/providers', { name: 'refusing', kind: 'openai-compatible', base_url: refusal })
    await home.run('Pauper', [{ name: 'object_search', args: {} }], { token_allocation: 10 })
    const lost = await home.agent('Lost', { model: { provider: 'refusing', name: 'any' } })
    await kit.api(`POST ${home.path}/tasks`, { title: 'Too hard', assigned_to: lost.id })
    await kit.api(`POST ${home.path}/tasks`, { title: 'Water the plants' })
    await until(async () => (await home.tasks('kind=escalation&status=pending')).length === 2, 'two agents need help')
    const { page, troubles } = await home.open(t)

    const budget = cardOf(page, 'Agent Pauper has used up its tokens')
    await budget.getByLabel('Tokens').fill('5000')
    await budget.getByRole('button', { name: 'Top up' }).click()
    await budget.getByText('It was answered: Tokens were added.').waitFor()
    const [pauper] = (await home.agents()).filter(({ name }) => name === 'Pauper')
    assert.equal(pauper?.token_allocation, 5_010)

    const stuck = cardOf(page, 'Agent Lost is stuck')
    await stuck.getByRole('link', { name: 'the blocked task' }).waitFor()
    await stuck.getByLabel('Your answer').fill('Ask the neighbour.')
    await stuck.getByRole('button', { name: 'Answer' }).click()
    await stuck.getByText('It was answered: Ask the neighbour.').waitFor()

    const work = cardOf(page, 'Water the plants')
    await work.getByRole('button', { name: 'Done' }).click()
    await work.getByText('It is done.').waitFor()
    const done = await home.tasks('kind=work&status=completed')
    assert.deepEqual(
      done.map(({ title }) => title),
      ['Water the plants'],
    )
    assert.deepEqual(troubles, [])
  })

  inSystem('a question is declined after one more question, and the kinds are a filter in the address', async (t) => {
    const home = await makeProject()
    await home.suggest('Steward', await home.object({ name: 'Ada' }), { n: 1 }, 'So.')
    await home.run('Asker', [{ name: 'ask_human', args: { question: 'Shall I?' } }])
    const { page, troubles } = await home.open(t)
    await cardOf(page, 'Shall I?').waitFor()
    await page.getByRole('navigation', { name: 'Kinds' }).getByRole('link', { name: 'Questions' }).click()
    await until(async () => (await page.getByRole('listitem', { name: 'Update Person Ada' }).count()) === 0, 'filtered')
    assert.equal(new URL(page.url()).searchParams.get('kind'), 'question')
    const card = cardOf(page, 'Shall I?')
    await card.getByRole('button', { name: 'Decline' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Decline' }).click()
    await card.getByText('It was closed without an answer.').waitFor()
    // The address still names the question, so it is shown; without it nothing waits.
    await page.reload()
    await card.getByText('It was closed without an answer.').waitFor()
    await page.goto(`${kit.muster.url}/projects/${home.id}/inbox?kind=question`)
    await page.getByText('Nothing of this kind waits.').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('the question of a supervisor names the supervisor, and its run goes on after the answer', async (t) => {
    const home = await makeProject({ default_model: { provider: 'offline', name: 'offline' } })
    const asked = await kit.muster.call<{ metadata: { run_id: string }; result: { status: string } }>(
      'POST /v1/agent/run',
      { headers: { 'x-project-id': home.id }, body: { input: { task: 'Ask a person whether it is done.' } } },
    )
    assert.equal(asked.body.result.status, 'ESCALATE', asked.text)
    const { page, troubles } = await home.open(t)
    const card = page.getByRole('list', { name: 'Waiting' }).getByRole('listitem')
    await card.getByText('asked by supervisor').waitFor()
    await card.getByLabel('Your answer').fill('It is.')
    await card.getByRole('button', { name: 'Answer' }).click()
    await card.getByText('It was answered').waitFor()
    const runId = asked.body.metadata.run_id
    await until(async () => (await home.readRun(runId)).status === 'completed', 'the run is over')
    assert.deepEqual(troubles, [])
  })

  inSystem('texts of people and models open no dialog, load nothing and are shown literally', async (t) => {
    const evil = `<img src="http://evil.invalid/a.png" onerror="alert(1)"><script>alert(3)</script>`
    const home = await makeProject()
    const object = await home.object({ [evil]: evil, name: 'plain' })
    await home.suggest(evil, object, { [`new ${evil}`]: [evil], name: 'safe\u202etxt.exe' }, `Because ${evil}`)
    await home.run('Asker', [{ name: 'ask_human', args: { question: evil } }])
    const { page, troubles } = await home.open(t)
    await page.getByText(`Because ${evil}`).waitFor()
    await page.getByText('"safe⟨U+202E⟩txt.exe"').waitFor()
    assert.equal(await page.locator('main img, main script').count(), 0)
    assert.deepEqual(troubles, [])
  })

  inSystem('a viewer sees everything and decides nothing; a member decides but gives no tokens', async (t) => {
    await kit.api(`POST ${kit.path}/tasks`, { title: 'Weed the bed' })
    await kit.trigger(
      { tag: 'poor', steps: [{ say: 'a', calls: [{ name: 'object_search', args: {} }] }, { say: 'b' }] },
      {},
      await makeAgent(kit.path, 'Pauper', { token_allocation: 10 }),
    )
    const [viewer, member] = [await kit.invite('viewer'), await kit.invite('member')]
    const { page, troubles } = await kit.open(t, '/inbox', viewer)
    await page.getByText('Weed the bed').waitFor()
    await page.getByText('An admin of the project can give it tokens.').waitFor()
    assert.equal(await page.getByRole('main').getByRole('button').count(), 0)
    const { page: theirs } = await kit.open(t, '/inbox', member)
    await theirs.getByText('An admin of the project can give it tokens.').waitFor()
    assert.equal(await theirs.getByRole('button', { name: 'Top up' }).count(), 0)
    await cardOf(theirs, 'Weed the bed').getByRole('button', { name: 'Done' }).click()
    await cardOf(theirs, 'Weed the bed').getByText('It is done.').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('axe finds nothing, dark and light, on a desktop and on a phone', async (t) => {
    const agent = await makeAgent(kit.path, 'Looker', { execution_mode: 'suggest' })
    const { id } = await kit.api<GraphObject>(`POST ${kit.path}/objects`, { type: 'Bed', properties: { name: 'Rose' } })
    const long = 'The roses need water every second evening, and shade at noon.'
    await kit.api(`POST ${kit.path}/agents/${agent.id}/trigger`, {
      input: {
        tag: 'looks',
        steps: [
          {
            say: 'I do both.',
            calls: [
              { name: 'object_update', args: { id, properties: { note: long, name: 'Roses' }, reasoning: 'Plural.' } },
              { name: 'ask_human', args: { question: 'Is that so?' } },
            ],
          },
          { say: 'Done.' },
        ],
      },
    })
    await kit.api(`POST ${kit.path}/tasks`, { title: 'Buy soil', priority: 'urgent' })
    const { page } = await kit.open(t, '/inbox')
    await kit.checkLooks(page, '/inbox', () => page.getByText('Is that so?').first().waitFor())
  })

  inSystem('an undecided outcome is decided by a person, and the run goes on', async (t) => {
    const { muster, project } = await startUndecided(t)
    const signedIn = await muster.call(`GET ${new URL(muster.signInLink()).pathname}`, { token: null })
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const { page, context, troubles } = await openPage(kit.browser, { origin: muster.url, cookie })
    t.after(() => context.close())
    await page.goto(`${muster.url}/projects/${project}/inbox`)
    const card = cardOf(page, 'Did the call of http_fetch take effect?')
    await card.getByRole('button', { name: 'It was not done' }).waitFor()
    await card.getByRole('button', { name: 'It was done' }).click()
    await card.getByText('It was answered: done').waitFor()
    await until(async () => {
      const { body } = await muster.call<{ items: Run[] }>(`GET /api/projects/${project}/runs?status=completed`)
      return body.items.length > 0
    }, 'the run goes on')
    assert.deepEqual(troubles, [])
  })
})

const cardOf = (page: Page, title: string): Locator =>
  page.getByRole('list', { name: 'Waiting' }).getByRole('listitem', { name: title, exact: true })

const linesOf = async (list: Locator): Promise<string[]> =>
  (await list.getByRole('listitem').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ').trim())

const TOOLS = ['object_update', 'object_search', 'ask_human']

const makeAgent = (path: string, name: string, fields: object = {}): Promise<Agent> =>
  kit.api<Agent>(`POST ${path}/agents`, {
    name,
    model: { provider: 'planned', name: 'any' },
    tools: TOOLS,
    ...fields,
  })

/** A project of its own, so that nothing of another test waits there. */
async function makeProject(settings?: object) {
  const { id } = await kit.api<{ id: string }>('POST /api/projects', { name: 'Support' })
  const path = `/api/projects/${id}`
  if (settings) await kit.api(`PATCH ${path}/settings`, settings)
  const list = async <Item>(rest: string) => (await kit.api<{ items: Item[] }>(`GET ${path}${rest}`)).items
  const agent = (name: string, fields?: object) => makeAgent(path, name, fields)
  const run = async (name: string, calls: { name: string; args: object }[], fields?: object): Promise<Run> => {
    const made = await agent(name, fields)
    const input = { tag: made.id, steps: [{ say: 'I see.', calls }, { say: 'Done.' }] }
    return kit.api<Run>(`POST ${path}/agents/${made.id}/trigger`, { input })
  }
  return {
    id,
    path,
    agent,
    run,
    tasks: (query: string) => list<Task>(`/tasks?${query}`),
    agents: () => list<Agent>('/agents'),
    readRun: (runId: string) => kit.api<Run>(`GET ${path}/runs/${runId}`),
    object: (properties: object) => kit.api<GraphObject>(`POST ${path}/objects`, { type: 'Person', properties }),
    suggest: async (name: string, object: GraphObject, properties: object, reasoning: string): Promise<Agent> => {
      const call = { name: 'object_update', args: { id: object.id, properties, reasoning } }
      const { agent_id: agentId, status } = await run(name, [call], { execution_mode: 'suggest' })
      assert.equal(status, 'completed')
      return kit.api<Agent>(`GET ${path}/agents/${agentId}`)
    },
    open: async (t: Cleanup): Promise<Watched> => {
      const watched = await openPage(kit.browser, { origin: kit.muster.url, cookie: kit.cookie })
      t.after(() => watched.context.close())
      await watched.page.goto(`${kit.muster.url}/projects/${id}/inbox`)
      return watched
    },
  }
}

/** A server that found a run whose call of http_fetch was interrupted by kill -9. */
async function startUndecided(t: Cleanup): Promise<{ muster: Muster; project: string }> {
  let isCalled = false
  const hanging = await serveLocally(t, () => {
    isCalled = true
    return new Promise(() => {})
  })
  const model = await startFakeModel(t)
  const databaseUrl = await createUnusedDatabase()
  const env = { MUSTER_DEMO: 'off', MUSTER_LEASE: '2000', MUSTER_EGRESS_ALLOW: new URL(hanging).host }
  const first = await startMuster(t, { databaseUrl, env })
  const post = async <Body = { id: string }>(route: string, body: object, headers = {}): Promise<Body> =>
    (await first.call<Body>(`POST ${route}`, { body, headers })).body
  await post('/api/providers', { name: 'planned', kind: 'openai-compatible', base_url: model.url })
  const { id: project } = await post('/api/projects', { name: 'Letters' })
  const { id: agent } = await post(`/api/projects/${project}/agents`, {
    name: 'Clerk',
    model: { provider: 'planned', name: 'any' },
    tools: ['http_fetch'],
  })
  const call = { name: 'http_fetch', args: { url: `${hanging}/letters`, method: 'POST', body: 'Dear Ada' } }
  const input = { tag: 'letter', steps: [{ say: 'I post it.', calls: [call] }, { say: 'It is posted.' }] }
  await post(`/api/projects/${project}/agents/${agent}/trigger`, { input }, { prefer: 'respond-async' })
  await until(() => isCalled, 'the call is made')
  await first.kill('SIGKILL')
  const muster = await startMuster(t, { databaseUrl, env, dataDir: first.dataDir })
  await until(async () => {
    const { body } = await muster.call<{ items: Task[] }>(`GET /api/projects/${project}/tasks?kind=escalation`)
    return body.items.length === 1
  }, 'a person is asked')
  return { muster, project }
}
