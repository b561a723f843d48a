// Effects in a real browser: stopped work is continued, not repeated; calls wait for a person; waits are seen.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Agent } from '../../src/kernel/agent.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import type { Run } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { findViolations } from '../kit/axe.ts'
import { askAboutBeginning } from '../kit/begin-anew.ts'
import { noBrowser } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import type { Plan } from '../kit/fake-model.ts'
import { type Ledger, startLedger } from '../kit/ledger-server.ts'
import { repository } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit
let ledger: Ledger
let payer: Agent

before(async () => {
  if (skip) return
  ledger = await startLedger({ after: atEnd })
  kit = await startConsole({ after: atEnd }, { MUSTER_APP: `${repository}test/fixtures/ledger-app.ts` })
  payer = await makeAgent('Payer', { tools: ['pay', 'post', 'look'] })
})

const makeAgent = (name: string, fields: object): Promise<Agent> =>
  kit.api<Agent>(`POST ${kit.path}/agents`, { name, model: { provider: 'planned', name: 'any' }, ...fields })

const call = (name: string, label: string) => ({ name, args: { url: ledger.url, label } })

/** The model refuses the step after the last one, so the run fails there. */
async function fail(plan: Plan, agent = payer): Promise<Run> {
  const { id } = await kit.trigger(plan, {}, agent)
  await until(async () => (await kit.readRun(id)).status === 'failed', 'the run fails')
  return kit.readRun(id)
}

describe('effects in a browser', { skip }, () => {
  test('a failed run is resumed after its last step, and says which calls are not repeated', async (t) => {
    const failed = await fail({
      tag: 'failed',
      steps: [
        { say: 'I pay.', calls: [call('pay', 'failed 1')] },
        { say: 'I post.', calls: [call('post', 'failed 2'), call('look', 'failed 3')] },
      ],
    })
    const { page, troubles } = await kit.open(t, `/runs/${failed.id}`)
    await page.getByText('Continues after step 2; 2 calls took effect and are not repeated.').waitFor()
    await picture(page, 'failed')
    assert.equal(await page.getByRole('button', { name: 'Retry' }).count(), 0)
    await kit.checkLooks(page, `/runs/${failed.id}`, () => page.getByText(/took effect/).waitFor())

    await page.getByRole('button', { name: 'Start again from the beginning' }).click()
    const again = page.getByRole('dialog', { name: 'Start again from the beginning?' })
    const named = again.getByRole('list', { name: 'Calls that may be repeated' }).getByRole('listitem')
    await named.nth(1).waitFor()
    const lines = await named.allInnerTexts()
    assert.match(lines[0] ?? '', /^pay \{"url":.*"label":"failed 1"\}/)
    assert.match(lines[1] ?? '', /^post \{"url":.*"label":"failed 2"\}/)
    assert.equal(lines.length, 2)
    assert.deepEqual(await findViolations(page), [])
    await picture(page, 'again')
    await again.getByRole('button', { name: 'Cancel' }).click()

    await page.getByRole('button', { name: 'Fork from here, after step 1' }).click()
    const fork = page.getByRole('dialog', { name: 'Fork after step 1' })
    await fork.getByText('This call may be made a second time:').waitFor()
    assert.match((await fork.getByRole('listitem').textContent()) ?? '', /^post /)
    await fork.getByRole('button', { name: 'Cancel' }).click()

    await page.getByRole('button', { name: 'Resume' }).click()
    const dialog = page.getByRole('dialog', { name: 'Resume' })
    await dialog.getByText('2 calls took effect').waitFor()
    await dialog.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('link', { name: /Continues the run/ }).waitFor()
    const resumed = page.url().split('/').at(-1) ?? ''
    assert.equal((await kit.readRun(resumed)).resumed_from, failed.id)
    await until(async () => (await kit.readRun(resumed)).completed_at !== null, 'the resumed run ends')
    assert.deepEqual([ledger.callsOf('failed 1').length, ledger.callsOf('failed 2').length], [1, 1])

    await kit.goTo(page, `/runs/${failed.id}`)
    await page.getByRole('link', { name: 'Open the run that continues it' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Resume' }).count(), 0)
    assert.deepEqual(troubles, [])
  })

  test('a new start of a resumed run has the input that the work began with', async (t) => {
    const failed = await fail({ tag: 'fresh', steps: [{ say: 'I pay.', calls: [call('pay', 'fresh')] }] })
    const resumed = await kit.api<Run>(`POST ${kit.path}/runs/${failed.id}/resume`, {})
    const { page, troubles } = await kit.open(t, `/runs/${resumed.id}`)
    await page.getByRole('button', { name: 'Start again from the beginning' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Start again' }).click()
    await page.waitForURL((url) => !url.pathname.endsWith(resumed.id))
    const fresh = await kit.readRun(page.url().split('/').at(-1) ?? '')
    assert.deepEqual([fresh.input, fresh.resumed_from], [failed.input, null])
    assert.deepEqual(troubles, [])
  })

  test('Resume of an attempt at a blocked task sets the task to pending, and shows it', async (t) => {
    await kit.api(`PATCH ${kit.path}/settings`, { stuck_retry_limit: 0 })
    const lost = await makeAgent('Lost', { prompt_id: 'nowhere' })
    const task = await kit.api<Task>(`POST ${kit.path}/tasks`, { title: 'Find it', assigned_to: lost.id })
    const read = (): Promise<Task> => kit.api<Task>(`GET ${kit.path}/tasks/${task.id}`)
    await until(async () => (await read()).status === 'blocked', 'the task is blocked')
    const attempts = async () => (await kit.api<{ items: Run[] }>(`GET ${kit.path}/runs?agent_id=${lost.id}`)).items
    const [first] = await attempts()
    const { page, troubles } = await kit.open(t, `/runs/${first?.id}`)
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.waitForURL((url) => url.pathname.endsWith('/organisation') && url.searchParams.get('task') === task.id)
    await page.getByRole('dialog', { name: 'Find it' }).getByRole('link', { name: 'Attempt 2' }).waitFor()
    assert.equal((await attempts()).length, 2)
    assert.deepEqual(troubles, [])
  })

  test('a leaf leads to its flow run, whose Resume takes over the finished tasks', async (t) => {
    const leaf = { tag: 'leaf', steps: [{ say: 'I pay.', calls: [call('pay', 'leaf')] }] }
    const steps = [
      { type: 'task', id: 'first', function: 'muster.identity', args: 1 },
      { type: 'task', id: 'second', agent: 'Payer', input: leaf },
    ]
    const { id } = await kit.api<FlowRun>(`POST ${kit.path}/flow-runs`, { root: { type: 'sequential', steps } })
    const read = (flowRunId: string) => kit.api<FlowRun>(`GET ${kit.path}/flow-runs/${flowRunId}`)
    await until(async () => (await read(id)).status === 'failed', 'the flow run fails')
    const { items } = await kit.api<{ items: Run[] }>(`GET ${kit.path}/runs?flow_run_id=${id}`)
    const { page, troubles } = await kit.open(t, `/runs/${items[0]?.id}`)
    assert.equal(await page.getByRole('button', { name: 'Resume' }).count(), 0)
    await page.getByRole('link', { name: 'Open its flow run' }).click()
    const reason = page.getByRole('region', { name: 'Reason' })
    await reason.getByText('Resume continues it: 1 finished task is kept.').waitFor()
    await reason.getByRole('button', { name: 'Resume' }).click()
    const dialog = page.getByRole('dialog', { name: 'Resume' })
    await dialog.getByText('1 of 2 tasks is finished.').waitFor()
    await picture(page, 'flow')
    await dialog.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('link', { name: /Continues the flow run/ }).waitFor()
    const resumed = await read(new URL(page.url()).pathname.split('/').at(-1) ?? '')
    assert.equal(resumed.resumed_from, id)
    await until(async () => (await read(resumed.id)).completed_at !== null, 'the resumed flow run ends')
    assert.equal(ledger.effects('leaf'), 1)
    await kit.goTo(page, `/flows/${id}`)
    await reason.getByRole('link', { name: 'Open the flow run that continues it' }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('a call waits in the inbox with its arguments, is approved once, and another is rejected', async (t) => {
    const careful = await makeAgent('Careful', { tools: ['pay', 'post'], require_approval: ['post'] })
    const run = await askFor(careful, 'letter', 2)
    const { page, troubles } = await kit.open(t, `/runs/${run.id}`)
    await page.getByText('Careful waits for your approval of post.').waitFor()
    await page.getByRole('heading', { level: 1 }).getByText('Careful').waitFor()
    await page.getByText('waiting', { exact: true }).first().waitFor()
    await page.getByRole('link', { name: 'Review call: post' }).first().click()

    const cards = page.getByRole('list', { name: 'Waiting' }).getByRole('listitem', { name: 'Call post' })
    const card = cards.first()
    await card.getByText('Calls post in the name of Careful.').waitFor()
    await card.getByText('I write letters.').waitFor()
    const rows = card.getByRole('table', { name: 'Arguments of post' }).getByRole('row')
    assert.match((await rows.allInnerTexts()).join('\n'), /url\s+http:.*\s+label\s+letter [12]/s)
    await picture(page, 'inbox')
    await card.getByRole('button', { name: 'Approve' }).click()
    await card.getByText('It was approved: the run makes the call.').waitFor()
    const other = cards.nth(1)
    await other.getByRole('button', { name: 'Reject' }).click()
    const dialog = page.getByRole('dialog', { name: 'Reject this call?' })
    await dialog.getByLabel('Reason').fill('Not this one')
    await dialog.getByRole('button', { name: 'Reject' }).click()
    await other.getByText('It was rejected: Not this one').waitFor()
    await until(async () => (await kit.readRun(run.id)).status === 'completed', 'the run continues')
    assert.equal(ledger.callsOf('letter 1').length + ledger.callsOf('letter 2').length, 1)
    await kit.goTo(page, `/runs/${run.id}`)
    await page.getByText(/^rejected by .*, \d\d:\d\d$/).waitFor()
    await page.getByText(/^approved by .*, \d\d:\d\d · /).waitFor()
    await picture(page, 'decided')
    assert.deepEqual(troubles, [])
  })

  test('keys decide about calls, and calls in bulk are asked about once more', async (t) => {
    const many = await makeAgent('Many', { tools: ['post'], require_approval: ['post'] })
    const run = await askFor(many, 'bulk', 3)
    const { page, troubles } = await kit.open(t, '/inbox?kind=call')
    const open = page.getByRole('list', { name: 'Waiting' }).getByRole('button', { name: 'Approve' })
    await open.nth(2).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('a')
    await page.getByText('It was approved: the run makes the call.').waitFor()
    await page.getByLabel('Select all').check()
    await page.getByRole('button', { name: 'Approve selected' }).click()
    const sure = page.getByRole('dialog', { name: 'Make 2 calls?' })
    await sure.getByText('calls of post (2 times)').waitFor()
    await sure.getByRole('button', { name: 'Approve' }).click()
    await until(async () => (await kit.readRun(run.id)).status === 'completed', 'the run continues')
    for (const label of ['bulk 1', 'bulk 2', 'bulk 3']) assert.equal(ledger.callsOf(label).length, 1)
    assert.deepEqual(troubles, [])
  })

  test('a stale call can only be rejected, and its link leads to the field that asks', async (t) => {
    const waiter = await makeAgent('Waiter', { tools: ['post'], require_approval: ['post'] })
    await askFor(waiter, 'stale', 1)
    const { page, troubles } = await kit.open(t, '/inbox?kind=call')
    const card = page.getByRole('listitem', { name: 'Call post' })
    await card.getByRole('button', { name: 'Approve' }).waitFor()
    await kit.checkLooks(page, '/inbox?kind=call', () => card.getByRole('link', { name: 'Stop asking' }).waitFor())
    await picture(page, 'inbox-phone')
    await kit.api(`PATCH ${kit.path}/agents/${waiter.id}`, { enabled: false })
    await card.getByRole('button', { name: 'Approve' }).click()
    await card.getByText('It can only be rejected.').waitFor()
    assert.equal(await card.getByRole('button', { name: 'Approve' }).count(), 0)
    await card.getByRole('link', { name: 'Stop asking' }).click()
    const inUse = (): Promise<unknown> => page.evaluate('document.activeElement?.dataset.path')
    await until(async () => (await inUse()) === 'require_approval', 'the field has the focus')
    await page.getByText('Ask before these calls').waitFor()
    await kit.goTo(page, `/agents/${waiter.id}`)
    await page.getByText('Asks before').waitFor()
    assert.deepEqual(troubles, [])
  })

  test('work that would start over shows every call made so far, and is stopped in plain words', async (t) => {
    const id = await askAboutBeginning(kit.databaseUrl, kit.project, payer.id)
    const { page, troubles } = await kit.open(t, `/inbox?item=${id}`)
    const card = page.getByRole('listitem', { name: 'Start over on "Pay Ada"?' })
    const calls = card.getByRole('list', { name: 'Calls so far' }).locator(':scope > li')
    await calls.nth(2).waitFor()
    const told = (await calls.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))
    assert.match(told[0] ?? '', /^refund .*order 7 Result \{"ok":true\} Key key-1$/)
    assert.match(told[1] ?? '', /^notify .* Result unknown Key key-2$/)
    assert.match(told[2] ?? '', /^silent .* Result null Key key-3$/)
    await card.getByText('These calls were made, or may have been').waitFor()
    await card.getByRole('button', { name: 'Start over' }).waitFor()
    await kit.checkLooks(page, `/inbox?item=${id}`, () => card.getByRole('button', { name: 'Stop' }).waitFor())
    await picture(page, 'anew')
    await card.getByRole('button', { name: 'Stop' }).click()
    await card.getByText('The work was stopped.').waitFor()
    assert.equal((await kit.api<Task>(`GET ${kit.path}/tasks/${id}`)).result, 'stop')
    assert.deepEqual(troubles, [])
  })
})

/** A run of the agent that asks for so many letters. */
async function askFor(agent: Agent, label: string, count: number): Promise<Run> {
  const calls = Array.from({ length: count }, (_, place) => call('post', `${label} ${place + 1}`))
  const { id } = await kit.trigger(
    { tag: label, steps: [{ say: 'I write letters.', calls }, { say: 'Done.' }] },
    {},
    agent,
  )
  await until(async () => (await kit.readRun(id)).waiting_for === 'approval', 'the calls wait')
  return kit.readRun(id)
}

/** MUSTER_TEST_LOOKS names a folder for pictures that a person looks at. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.MUSTER_TEST_LOOKS
  if (folder) await page.screenshot({ path: `${folder}/ui-${name}.png` })
}
