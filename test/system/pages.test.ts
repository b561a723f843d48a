// The pages in a real browser, against a real server: what an admin, a member and a viewer see and do there.
import assert from 'node:assert/strict'
import { before, describe } from 'node:test'
import type { Browser, Locator, Page } from 'playwright-core'
import type { Agent } from '../../src/kernel/agent.ts'
import type { Hook } from '../../src/kernel/hook.ts'
import type { GraphObject, ObjectVersion, ProcessingEntry } from '../../src/kernel/object.ts'
import type { Run } from '../../src/kernel/run.ts'
import type { Schedule } from '../../src/kernel/schedule.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, openPage, startBrowser, visit, type Watched } from '../kit/browser.ts'
import { createEmptyDatabase } from '../kit/database.ts'
import { until } from '../kit/embedded-kit.ts'
import { type Plan, startFakeModel } from '../kit/fake-model.ts'
import { startBareServer } from '../kit/model-server.ts'
import { type Cleanup, type Muster, startMuster } from '../kit/process.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'

const wholeFile = { after: atEnd }
const skip = noBrowser
/** By the fake model; `refusing` fails at its first call. */
const planned = { provider: 'planned', name: 'planned' }
const refusing = { provider: 'refusing', name: 'refusing' }

let muster: Muster
let browser: Browser
let adminCookie: string

before(async () => {
  if (skip) return
  const refusal = await startBareServer((_request, response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}')
  })
  const model = await startFakeModel(wholeFile)
  muster = await startMuster(wholeFile, { databaseUrl: await createEmptyDatabase(), env: { MUSTER_DEMO: 'off' } })
  browser = await startBrowser(wholeFile)
  for (const [name, base_url] of Object.entries({ planned: model.url, refusing: refusal })) {
    await api('POST /api/providers', { name, kind: 'openai-compatible', base_url })
  }
  const signedIn = await muster.call(`GET ${new URL(muster.signInLink()).pathname}`, { token: null })
  adminCookie = cookieOf(signedIn.headers)
  // The first page of a new browser takes long on a busy machine, and is no test's.
  const first = await openPage(browser, { origin: muster.url, cookie: adminCookie })
  await visit(first.page, muster.url)
  await first.page.locator('main .columns').waitFor()
  await first.context.close()
})

describe('the pages in a browser', { concurrency: 2, skip }, () => {
  test('Agent Creation: an admin can select webhook from the trigger type dropdown', async (t) => {
    const project = await createProject()
    const { page, troubles } = await open(t, adminCookie, `${project}/agents`)
    await page.getByRole('link', { name: 'New agent' }).click()
    const dropdown = page.getByLabel('Trigger type')
    await dropdown.waitFor()
    assert.deepEqual(await dropdown.locator('option').allTextContents(), ['manual', 'schedule', 'webhook', 'reaction'])
    await dropdown.selectOption('schedule')
    await page.getByLabel('Schedule', { exact: true }).waitFor()
    await dropdown.selectOption('webhook')
    await page.getByLabel('Schedule', { exact: true }).waitFor({ state: 'hidden' })
    await page.getByText("Hooks are made on the agent's page").waitFor()
    await page.getByLabel('Name').fill('Triage')
    await page.getByLabel('Tools').fill('object_search, object_get')
    await page.getByRole('button', { name: 'Create agent' }).click()
    await page.getByRole('heading', { name: 'Triage' }).waitFor()
    const [created] = await agentsOf(project)
    assert.equal(created?.trigger_type, 'webhook')
    assert.deepEqual(created?.tools, ['object_search', 'object_get'])

    const edited = await createAgent(project, { name: 'By hand', prompt: 'Two\nlines', max_steps: 7 })
    await page.goto(addressOf(`${project}/agents/${edited.id}`))
    await page.getByRole('link', { name: 'Edit By hand' }).click()
    await page.getByLabel('Trigger type').selectOption('webhook')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('region', { name: 'Webhooks' }).waitFor()
    const after = await api<Agent>(`GET ${pathOf(project)}/agents/${edited.id}`)
    const changing = { updated_at: '', last_polled_at: null }
    assert.deepEqual({ ...after, ...changing }, { ...edited, trigger_type: 'webhook', ...changing })
    assert.deepEqual(troubles, [])
  })

  test('an agent that is kept from its tasks says so', async (t) => {
    const project = await createProject()
    const agent = await createAgent(project, { name: 'Stopped' })
    await createAgent(project, { name: 'At work' })
    await api(`POST ${pathOf(project)}/agents/${agent.id}/stop`)
    const { page, troubles } = await open(t, adminCookie, `${project}/agents`)
    const row = (name: string) => page.getByRole('listitem').filter({ hasText: name })
    await row('Stopped').getByText('paused').waitFor()
    assert.equal(
      await row('At work')
        .getByText(/paused|active/)
        .count(),
      0,
    )
    await page.goto(addressOf(`${project}/agents/${agent.id}`))
    await page.getByRole('heading', { name: 'Stopped' }).waitFor()
    await page.locator('.badge', { hasText: 'paused' }).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('what the API refuses is said at the form, and nothing is lost of what was typed', async (t) => {
    const project = await createProject()
    const { page, troubles } = await open(t, adminCookie, `${project}/agents/new`)
    await page.getByLabel('Name').fill('Report')
    await page.getByLabel('Trigger type').selectOption('schedule')
    await page.getByLabel('Schedule', { exact: true }).fill('61 * * * *')
    await page.getByRole('button', { name: 'Create agent' }).click()
    assert.match((await page.getByRole('alert').textContent()) ?? '', /cron_schedule/)
    await page.getByLabel('Schedule', { exact: true }).fill('0 9 * * 1-5')
    await page.getByLabel('Time zone').fill('Europe/Berlin')
    await page.getByRole('button', { name: 'Create agent' }).click()
    await page.getByRole('heading', { name: 'Report' }).waitFor()
    const { items } = await api<{ items: Schedule[] }>(`GET ${pathOf(project)}/schedule`)
    await page.locator(`time[datetime="${items[0]?.next_run_at}"]`).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('an agent is disabled, and deleted only after a confirmation', async (t) => {
    const project = await createProject()
    const agent = await createAgent(project, { name: 'Spare' })
    const { page, troubles } = await open(t, adminCookie, `${project}/agents/${agent.id}`)
    await page.getByRole('button', { name: 'Disable Spare' }).click()
    await page.getByRole('button', { name: 'Enable Spare' }).waitFor()
    assert.equal((await agentsOf(project))[0]?.enabled, false)
    await page.getByRole('button', { name: 'Delete Spare' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    assert.equal((await agentsOf(project)).length, 1)
    await page.getByRole('button', { name: 'Delete Spare' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No agent yet.').waitFor()
    assert.deepEqual(await agentsOf(project), [])
    assert.deepEqual(troubles, [])
  })

  inSystem('Webhook Details: the page of a webhook agent lists its hooks and can create and delete them', async (t) => {
    const project = await createProject()
    const agent = await createAgent(project, { name: 'Triage', trigger_type: 'webhook' })
    const hooks = `${pathOf(project)}/agents/${agent.id}/hooks`
    const first = await api<Hook>(`POST ${hooks}`, { name: 'github' })
    const { page, troubles } = await open(t, adminCookie, `${project}/agents/${agent.id}`)
    const section = page.getByRole('region', { name: 'Webhooks' })
    assert.equal(await section.getByLabel('the URL of github', { exact: true }).inputValue(), first.url)
    assert.match((await rowOf(section, 'github')) ?? '', /never used · created/)

    await section.getByLabel('Name').fill('linear')
    await section.getByRole('button', { name: 'Create hook' }).click()
    const secret = await section.getByLabel('The secret of linear').getByRole('textbox').inputValue()
    assert.match(secret, /^whsec_/)
    const url = await section.getByLabel('the URL of linear', { exact: true }).inputValue()
    assert.equal(await deliver(url, secret), 202)

    await section.getByRole('button', { name: 'Rotate the secret of linear' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    const rotated = await section.getByLabel('The new secret of linear').getByRole('textbox').inputValue()
    assert.notEqual(rotated, secret)
    assert.equal(await deliver(url, rotated), 202)
    await section.getByText(/old secret until/).waitFor()

    await page.reload()
    await section.getByText('linear', { exact: true }).waitFor()
    assert.equal((await page.content()).includes('whsec_'), false, 'a secret is shown again')
    await section.getByRole('button', { name: 'Delete the hook github' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await section.getByText('github', { exact: true }).waitFor({ state: 'detached' })
    const { items } = await api<{ items: Hook[] }>(`GET ${hooks}`)
    assert.deepEqual(
      items.map(({ name }) => name),
      ['linear'],
    )
    assert.deepEqual(troubles, [])
  })

  test('a suggestion with its diff is approved, and the object changes in the name of the agent', async (t) => {
    const project = await createProject()
    const ada = await createObject(project, {
      type: 'Person',
      properties: { name: 'Ada', email: 'ADA@X.ORG', born: 1815 },
    })
    const steward = await suggestChange(project, 'Steward', {
      id: ada.id,
      properties: { email: 'ada@x.org', phone: '+44' },
      reasoning: 'Mail to capitals bounces.',
    })
    const { page, troubles } = await open(t, adminCookie, `${project}/inbox`)
    const card = page.getByRole('listitem', { name: 'Update Person Ada' })
    await card.getByText('Mail to capitals bounces.').waitFor()
    await card.getByRole('link', { name: 'Steward' }).waitFor()
    assert.deepEqual(await card.locator('.diff li').allInnerTexts().then(asLines), [
      '~ email changed: "ADA@X.ORG" "ada@x.org"',
      '+ phone added: "+44"',
    ])
    await card.getByText('2 properties stay').waitFor()
    await card.getByRole('button', { name: 'Approve' }).click()
    await card.getByText('approved').waitFor()
    const after = await api<GraphObject>(`GET ${pathOf(project)}/objects/${ada.id}`)
    assert.deepEqual(after.properties, { name: 'Ada', email: 'ada@x.org', born: 1815, phone: '+44' })
    assert.deepEqual([after.actor_type, after.actor_id], ['agent', steward.id])

    await page.goto(addressOf(`${project}/objects/${ada.id}`))
    await page
      .getByRole('listitem')
      .filter({ hasText: 'Version 2' })
      .getByText('changed by Steward, approved by you')
      .waitFor()
    const { items } = await api<{ items: ObjectVersion[] }>(`GET ${pathOf(project)}/objects/${ada.id}/history`)
    const me = await muster.call('GET /api/me', { cookie: adminCookie })
    assert.equal(items[0]?.approved_by, me.body.id)
    assert.deepEqual(troubles, [])
  })

  inSystem('several are approved at once; the one whose object has moved on says so and can be rejected', async (t) => {
    const project = await createProject()
    const [moved, still] = [
      await createObject(project, { type: 'Person', key: 'moved', properties: { n: 1 } }),
      await createObject(project, { type: 'Person', key: 'still', properties: { n: 1 } }),
    ]
    await suggestChange(project, 'One', { id: moved.id, properties: { name: 'Moved' }, reasoning: 'Why not.' })
    await suggestChange(project, 'Two', { id: still.id, properties: { name: 'Still' }, reasoning: 'Why not.' })
    await api(`PATCH ${pathOf(project)}/objects/${moved.id}`, { properties: { n: 2 } })
    const { page, troubles } = await open(t, adminCookie, `${project}/inbox`)
    await page.getByLabel('Select all').check()
    await page.getByRole('button', { name: 'Approve selected (2)' }).click()
    await page.getByRole('listitem', { name: 'Update Person Still' }).getByText('approved').waitFor()
    const stale = page.getByRole('listitem', { name: 'Update Person Moved' })
    await stale.getByText('stale').waitFor()
    assert.match((await stale.getByRole('alert').textContent()) ?? '', /moved from version 1 to 2/)
    assert.equal(await stale.getByRole('button', { name: 'Approve' }).count(), 0)
    await stale.getByRole('button', { name: 'Reject' }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('Too late')
    await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click()
    await stale.getByText('rejected').waitFor()
    const { items } = await api<{ items: Task[] }>(`GET ${pathOf(project)}/tasks?status=rejected`)
    assert.deepEqual(items[0]?.result, { reason: 'Too late' })
    assert.deepEqual(troubles, [])
  })

  test('the question of a run is answered in the inbox, and the run goes on', async (t) => {
    const project = await createProject()
    const agent = await createAgent(project, { name: 'Asker', tools: ['ask_human'] })
    const run = await trigger(project, agent, [
      { name: 'ask_human', args: { question: 'Which colour?\nRed or blue.' } },
    ])
    assert.equal(run.pause_reason, 'human')
    const { page, troubles } = await open(t, adminCookie, `${project}/inbox`)
    const card = page.getByRole('listitem', { name: 'Which colour?' })
    await card.getByText('Red or blue.').waitFor()
    await card.getByLabel('Your answer').fill('Blue')
    await card.getByRole('button', { name: 'Answer' }).click()
    await card.getByText('answered').waitFor()
    const path = `${pathOf(project)}/runs/${run.id}`
    await until(async () => (await api<Run>(`GET ${path}`)).status === 'completed', 'the run is over')
    const { items } = await api<{ items: Record<string, unknown>[] }>(`GET ${path}/steps`)
    assert.ok(JSON.stringify(items).includes('Blue'), 'the run was not given the answer')
    assert.deepEqual(troubles, [])
  })

  test('the question of a supervisor names the supervisor; answered, its run goes on', async (t) => {
    const project = await createProject()
    const settings = { default_model: { provider: 'offline', name: 'offline' } }
    await api(`PATCH ${pathOf(project)}/settings`, settings)
    const asked = await muster.call<{ metadata: { run_id: string }; result: { status: string } }>(
      'POST /v1/agent/run',
      { headers: { 'x-project-id': project }, body: { input: { task: 'Ask a person whether it is done.' } } },
    )
    assert.equal(asked.body.result.status, 'ESCALATE', asked.text)
    const { page, troubles } = await open(t, adminCookie, `${project}/inbox`)
    const card = page.getByRole('region', { name: 'Questions' }).getByRole('listitem')
    await card.getByText('asked by supervisor').waitFor()
    await card.getByRole('textbox', { name: 'Your answer' }).fill('It is.')
    await card.getByRole('button', { name: 'Answer' }).click()
    await card.getByText('answered').waitFor()
    const path = `${pathOf(project)}/runs/${asked.body.metadata.run_id}`
    await until(async () => (await api<Run>(`GET ${path}`)).status === 'completed', 'the run is over')
    assert.deepEqual(troubles, [])
  })

  inSystem('an entry of the processing log that failed is tried again', async (t) => {
    const project = await createProject()
    const reaction_config = { objectTypes: ['Person'] }
    const agent = await createAgent(project, { name: 'R', trigger_type: 'reaction', reaction_config, model: refusing })
    await createObject(project, { type: 'Person', properties: {} })
    const firstEntry = async (): Promise<ProcessingEntry | undefined> =>
      (await api<{ items: ProcessingEntry[] }>(`GET ${pathOf(project)}/agents/${agent.id}/processing-log`)).items[0]
    await until(async () => (await firstEntry())?.status === 'failed', 'the entry failed')
    const failed = await firstEntry()
    const { page, troubles } = await open(t, adminCookie, `${project}/agents/${agent.id}`)
    const log = page.getByRole('region', { name: 'Processing log' })
    await log.getByText('failed', { exact: false }).first().waitFor()
    await log.getByRole('button', { name: 'Retry' }).click()
    await page.getByText('It is tried again.').waitFor()
    assert.notEqual((await firstEntry())?.run_id, failed?.run_id)
    assert.deepEqual(troubles, [])
  })

  inSystem('objects are found by type and words, and made of JSON', async (t) => {
    const project = await createProject()
    await createObject(project, { type: 'Person', properties: { name: 'Ada' } })
    await createObject(project, { type: 'Person', properties: { name: 'Grace' } })
    await createObject(project, { type: 'Company', properties: { name: 'Ada Ltd' } })
    const { page, troubles } = await open(t, adminCookie, `${project}/objects`)
    const search = page.getByRole('form', { name: 'Find objects' })
    await page.getByRole('link', { name: 'Grace' }).waitFor()
    await search.getByLabel('Type').fill('Person')
    await search.getByLabel('Search').fill('ada')
    await search.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('link', { name: 'Grace' }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Ada' }).first().waitFor()
    assert.deepEqual(
      await page
        .getByRole('list', { name: 'Objects' })
        .getByRole('link', { name: /Ada|Grace/ })
        .allTextContents(),
      ['Ada'],
    )
    await page.getByText('New object').click()
    const create = page.getByRole('form', { name: 'Create an object' })
    await create.getByLabel('Type').fill('City')
    await create.getByLabel('Properties').fill('{"name":')
    await create.getByRole('button').click()
    await create.getByText(/^The properties are no JSON/).waitFor()
    await create.getByLabel('Properties').fill('{"name": "Turin"}')
    await create.getByRole('button').click()
    await page.getByRole('heading', { name: 'Turin' }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('what people and models wrote opens no dialog, loads nothing and is shown as it is', async (t) => {
    const evil = `<img src="http://evil.invalid/a.png" onerror="alert(1)"><img src=x onerror=alert(2)><script>alert(3)</script>`
    const link = 'javascript:alert(4)'
    const project = await createProject(`P ${evil}`)
    const hostile = await createObject(project, {
      type: evil,
      key: `k ${evil}`,
      properties: { [evil]: evil, name: link },
    })
    const agent = await suggestChange(
      project,
      evil,
      {
        id: hostile.id,
        properties: { [`new ${evil}`]: [evil, { [evil]: link }], name: 'safe\u202etxt.exe' },
        reasoning: `Because ${evil}`,
      },
      { role: evil, prompt: evil, trigger_type: 'webhook' },
    )
    await api(`POST ${pathOf(project)}/agents/${agent.id}/hooks`, { name: evil })
    await trigger(project, agent, [{ name: 'ask_human', args: { question: evil } }])
    const { page, troubles } = await open(t, adminCookie, `${project}/inbox`)
    await page.getByText(`Because ${evil}`).waitFor()
    await page.getByText('"safe⟨U+202E⟩txt.exe"').waitFor()
    await assertPlain(page)
    const panel = page.locator('.panel')
    for (const [place, shown] of [
      ['agents', panel.getByText(evil).first()],
      [`agents/${agent.id}`, panel.getByLabel(`the URL of ${evil}`, { exact: true })],
      [`agents/${agent.id}/edit`, page.getByLabel('Prompt')],
      ['objects', panel.getByText(`k ${evil}`)],
      [`objects/${hostile.id}`, panel.getByText('Version 1', { exact: true })],
      ['audit', panel.getByText('agent.create')],
    ] as const) {
      await page.goto(addressOf(`${project}/${place}`))
      await shown.waitFor()
      await assertPlain(page)
    }
    await page.goto(addressOf(`${project}/inbox`))
    await page.getByRole('listitem').filter({ hasText: 'Because' }).getByRole('button', { name: 'Approve' }).click()
    await page.locator('.panel').getByText('approved').waitFor()
    await assertPlain(page)
    assert.deepEqual(troubles, [])
  })

  test('a viewer sees all of it and no button that changes anything; a member decides and edits no agent', async (t) => {
    const project = await createProject()
    const object = await createObject(project, { type: 'Person', properties: { name: 'Ada' } })
    const agent = await suggestChange(
      project,
      'Steward',
      { id: object.id, properties: { n: 1 }, reasoning: 'So.' },
      {
        trigger_type: 'webhook',
      },
    )
    await api(`POST ${pathOf(project)}/agents/${agent.id}/hooks`, { name: 'github' })
    const buttonsOf = async ({ page }: Watched, place: string, shown: string): Promise<string[]> => {
      await page.goto(addressOf(`${project}/${place}`))
      await page.locator('.panel').getByText(shown, { exact: true }).first().waitFor()
      return page
        .locator('.panel')
        .locator('button, .button, input:not([readonly]), textarea')
        .evaluateAll(
          // Runs in the page, where elements are.
          (found: { textContent: string; name?: string }[]) => found.map((each) => each.textContent || each.name || ''),
        )
    }
    const viewer = await open(t, await join(project, 'viewer'), `${project}/agents`)
    assert.deepEqual(await buttonsOf(viewer, 'agents', 'Steward'), [])
    assert.deepEqual(await buttonsOf(viewer, `agents/${agent.id}`, 'github'), ['Copy', 'Refresh'])
    assert.deepEqual(await buttonsOf(viewer, 'inbox', 'Update Person Ada'), ['Refresh'])
    assert.deepEqual(await buttonsOf(viewer, 'objects', 'Ada'), ['type', 'q', 'Search'])
    assert.deepEqual(await buttonsOf(viewer, `agents/${agent.id}/edit`, 'github'), ['Copy', 'Refresh'])
    const member = await open(t, await join(project, 'member'), `${project}/agents`)
    assert.deepEqual(await buttonsOf(member, 'agents', 'Steward'), [])
    assert.deepEqual(await buttonsOf(member, `agents/${agent.id}`, 'github'), ['Copy', 'Refresh'])
    await member.page.goto(addressOf(`${project}/inbox`))
    await member.page.getByRole('button', { name: 'Approve Update Person Ada' }).click()
    await member.page.locator('.panel').getByText('approved').waitFor()
    assert.deepEqual([...viewer.troubles, ...member.troubles], [])
  })
})

async function api<Body = { id: string }>(route: string, body?: unknown): Promise<Body> {
  const answer = await muster.call<Body>(route, body === undefined ? {} : { body })
  assert.ok(answer.status < 300, `${route}: ${answer.text}`)
  return answer.body
}

const pathOf = (project: string): string => `/api/projects/${project}`
const addressOf = (place: string): string => `${muster.url}/#/projects/${place}`

/** Answers its id. */
async function createProject(name = 'Support'): Promise<string> {
  return (await api('POST /api/projects', { name })).id
}

function createAgent(project: string, fields: Record<string, unknown>): Promise<Agent> {
  return api<Agent>(`POST ${pathOf(project)}/agents`, { model: planned, ...fields })
}

const createObject = (project: string, fields: Record<string, unknown>): Promise<GraphObject> =>
  api<GraphObject>(`POST ${pathOf(project)}/objects`, fields)

const agentsOf = async (project: string): Promise<Agent[]> =>
  (await api<{ items: Agent[] }>(`GET ${pathOf(project)}/agents`)).items

/** A run whose model makes these calls and is done then. */
function trigger(
  project: string,
  agent: Agent,
  calls: { name: string; args: Record<string, unknown> }[],
): Promise<Run> {
  const input: Plan = { tag: agent.id, steps: [{ say: 'I see.', calls }, { say: 'Done.' }] }
  return api<Run>(`POST ${pathOf(project)}/agents/${agent.id}/trigger`, { input })
}

/** By a run of a new agent, as agents suggest. */
async function suggestChange(
  project: string,
  name: string,
  args: Record<string, unknown>,
  fields: Record<string, unknown> = {},
): Promise<Agent> {
  const tools = ['object_update', 'ask_human']
  const agent = await createAgent(project, { name, tools, execution_mode: 'suggest', ...fields })
  const run = await trigger(project, agent, [{ name: 'object_update', args }])
  assert.equal(run.status, 'completed', run.error_message ?? '')
  return agent
}

/** The cookie of a new person with this role. */
async function join(project: string, role: 'viewer' | 'member'): Promise<string> {
  const invited = { email: `${role}-${project}@example.com`, role }
  const { invitation_url } = await api<{ invitation_url: string }>(`POST ${pathOf(project)}/members`, invited)
  const token = new URL(invitation_url).pathname.split('/').at(-1)
  const accepted = await muster.call(`POST /api/invitations/${token}/accept`, {
    token: null,
    headers: { origin: muster.url },
    body: { name: role, password: 'a long password' },
  })
  assert.equal(accepted.status, 200, accepted.text)
  return cookieOf(accepted.headers)
}

const cookieOf = (headers: Headers): string => headers.getSetCookie()[0]?.split(';')[0] ?? assert.fail('no cookie')

/** Gone after the test. */
async function open(t: Cleanup, cookie: string, place: string): Promise<Watched> {
  const watched = await openPage(browser, { origin: muster.url, cookie })
  t.after(() => watched.context.close())
  await visit(watched.page, addressOf(place))
  return watched
}

const rowOf = (section: Locator, name: string): Promise<string | null> =>
  section.getByRole('listitem').filter({ hasText: name }).textContent()

const asLines = (texts: string[]): string[] => texts.map((text) => text.replace(/\s+/g, ' ').trim())

async function deliver(url: string, secret: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  return (await fetch(url, { method: 'POST', headers, body: '{}' })).status
}

/** Nothing that the page shows has become an element that loads, runs or leads to a script. */
async function assertPlain(page: Page): Promise<void> {
  const made = page.locator('main').locator('img, script, iframe, object, embed, [onerror], [href^="javascript:"]')
  assert.equal(await made.count(), 0)
}
