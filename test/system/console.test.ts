// The console in a real browser, against a real server whose model answers when the test lets it.
import assert from 'node:assert/strict'
import { before, describe } from 'node:test'
import type { Agent } from '../../src/kernel/agent.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { startMuster } from '../kit/process.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

describe('the console in a browser', { skip }, () => {
  inSystem('the runs are listed, filtered in the address, and lead to their pages', async (t) => {
    const done = await kit.play({ tag: 'listed', steps: [{ say: 'All is watered.' }] })
    const { page, troubles } = await kit.open(t, '/runs')
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    await page.getByRole('cell', { name: 'completed' }).first().waitFor()
    await page.getByRole('combobox', { name: 'Status' }).click()
    await page.getByRole('option', { name: 'failed' }).click()
    await page.getByText('No run matches.').waitFor()
    assert.equal(new URL(page.url()).searchParams.get('status'), 'failed')
    await page.goBack()
    await page.goto(`${kit.muster.url}/projects/${kit.project}/runs?status=completed`)
    await page.getByRole('link', { name: 'Gardener' }).first().click()
    await page.getByRole('heading', { name: 'Gardener', level: 1 }).waitFor()
    assert.ok(page.url().includes('/runs/'), page.url())
    assert.equal((await kit.readRun(done.id)).status, 'completed')
    assert.deepEqual(troubles, [])
  })

  test('a run page shows the text as it is written, the tool call and its result, and the end, without a reload', async (t) => {
    kit.model.hold('half-way')
    t.after(async () => kit.model.release('half-way'))
    const run = await kit.trigger({
      tag: 'live',
      steps: [
        { say: 'I look around.', calls: [{ name: 'object_search', args: { q: 'rose' } }] },
        { say: 'The **roses** are fine.', gate: 'half-way' },
      ],
    })
    const { page, troubles } = await kit.open(t, `/runs/${run.id}`)
    await page.getByText('is at work on step').waitFor()
    const transcript = page.getByRole('list', { name: 'Transcript' })
    await transcript.getByText('I look around.', { exact: true }).waitFor()
    const call = transcript.getByText('object_search', { exact: true })
    await call.click()
    await transcript.getByText('Result').waitFor()
    await transcript.getByText('writing').waitFor()
    kit.model.release('half-way')
    await page.getByText(/^Gardener finished in .* and 2 steps\.$/).waitFor()
    await transcript.locator('strong', { hasText: 'roses' }).waitFor()
    await page.getByRole('complementary').getByText('Step 2').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('the pages of a run and of a flow run see their end after the server was stopped and started', async (t) => {
    const own = await startConsole(t, { MUSTER_DRAIN: '500' })
    for (const gate of ['stop', 'end']) {
      own.model.hold(gate)
      t.after(async () => own.model.release(gate))
    }
    const look = { name: 'object_search', args: { q: 'rose' } }
    const steps = [
      { say: 'I dig.', gate: 'stop', calls: [look] },
      { say: 'I plant.', gate: 'end' },
    ]
    const run = await own.trigger({ tag: 'run', steps })
    const root = { type: 'task', agent: 'Gardener', input: { tag: 'leaf', steps } }
    const flow = await own.api<{ id: string }>(`POST ${own.path}/flow-runs`, { root })
    const ofRun = await own.open(t, `/runs/${run.id}`)
    const ofFlow = await own.open(t, `/flows/${flow.id}`)
    await ofRun.page.getByText('is at work on step').waitFor()
    await ofFlow.page.getByText('running', { exact: true }).first().waitFor()
    await until(
      async () => ['run', 'leaf'].every((tag) => own.model.requestsOf(tag).length > 0),
      'both models are asked',
    )
    await own.muster.stop()
    const { dataDir, port } = own.muster
    await startMuster(t, { databaseUrl: own.databaseUrl, dataDir, port, env: { MUSTER_DEMO: 'off' } })
    own.model.release('stop')
    // Only the stream of the run itself has the text that is being written.
    const transcript = ofRun.page.getByRole('list', { name: 'Transcript' })
    await transcript.getByText('Step 2', { exact: true }).waitFor()
    await transcript.getByText('writing').waitFor()
    own.model.release('end')
    await ofRun.page.getByText(/^Gardener finished in/).waitFor()
    await ofFlow.page.getByRole('main').getByText('completed', { exact: true }).first().waitFor()
    assert.deepEqual([...ofRun.troubles, ...ofFlow.troubles], [])
  })

  test('a run at its step limit says so, and Resume leads to the run that goes on', async (t) => {
    const limited = await kit.play(
      {
        tag: 'limit',
        steps: [
          { say: 'First.', calls: [{ name: 'object_search', args: {} }] },
          { say: 'So far so good.' },
          { say: 'And done.' },
        ],
      },
      { max_steps: 1 },
    )
    const { page, troubles } = await kit.open(t, `/runs/${limited.id}`)
    await page.getByText(/its limit\. Resume it with more steps\./).waitFor()
    await page.getByText('Step 2, the summary', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Resume' }).click()
    const dialog = page.getByRole('dialog', { name: 'Resume' })
    await dialog.getByLabel('Step limit').fill('5')
    await dialog.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('link', { name: /Continues the run/ }).waitFor()
    const resumed = page.url().split('/').at(-1) ?? ''
    assert.equal((await kit.readRun(resumed)).resumed_from, limited.id)
    await page.getByText('None of its own: it continues the run before it.').waitFor()
    // The steps of the run before it do not count.
    await page.getByText('Steps of this run alone: 1 of 5').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('a run is forked from a step with other input, and triggered again', async (t) => {
    const first = await kit.play({ tag: 'first', steps: [{ say: 'One.' }] })
    const { page, troubles } = await kit.open(t, `/runs/${first.id}`)
    await page
      .getByRole('button', { name: /Fork from here/ })
      .first()
      .click()
    const fork = page.getByRole('dialog', { name: 'Fork after step 1' })
    await fork.getByLabel('Input').fill(JSON.stringify({ tag: 'forked', steps: [{ say: 'One.' }, { say: 'Two.' }] }))
    await fork.getByRole('button', { name: 'Fork' }).click()
    await page.getByRole('link', { name: /Forked from the run/ }).waitFor()
    await page.getByRole('button', { name: 'Trigger' }).click()
    const again = page.getByRole('dialog', { name: 'Trigger again' })
    await again.getByLabel('Input').fill(JSON.stringify({ tag: 'again', steps: [{ say: 'Once more.' }] }))
    await again.getByRole('button', { name: 'Trigger' }).click()
    await page.getByRole('list', { name: 'Transcript' }).getByText('Once more.', { exact: true }).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('Cancel ends a run under way', async (t) => {
    kit.model.hold('never')
    t.after(async () => kit.model.release('never'))
    const run = await kit.trigger({ tag: 'endless', steps: [{ say: 'I wait.', gate: 'never' }] })
    const { page, troubles } = await kit.open(t, `/runs/${run.id}`)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText(/The run was cancelled/).waitFor()
    assert.equal((await kit.readRun(run.id)).status, 'cancelled')
    assert.deepEqual(troubles, [])
  })

  test('a question is answered on the page of its run, and the run goes on', async (t) => {
    const asking = await kit.api<Agent>(`POST ${kit.path}/agents`, {
      name: 'Asker',
      prompt: 'Ask first.',
      model: { provider: 'planned', name: 'any' },
      tools: ['ask_human'],
    })
    const steps = [
      { say: 'I ask.', calls: [{ name: 'ask_human', args: { question: 'Which bed comes first?' } }] },
      { say: 'The roses then.' },
    ]
    const { id } = await kit.trigger({ tag: 'asked', steps }, {}, asking)
    const { page, troubles } = await kit.open(t, `/runs/${id}`)
    await page.getByText('Asker waits for an answer from a person.').waitFor()
    await page.getByLabel('Which bed comes first?').fill('The roses')
    await page.getByRole('button', { name: 'Answer' }).click()
    await page.getByText(/^Asker finished in/).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('a run of a halted project goes on when the halt is lifted on its page', async (t) => {
    await kit.api(`POST ${kit.path}/halt`, {})
    const { id } = await kit.trigger({ tag: 'halted', steps: [{ say: 'Off we go.' }] })
    const { page, troubles } = await kit.open(t, `/runs/${id}`)
    const banner = page.getByRole('status', { name: 'Halt' })
    await banner.waitFor()
    // The verdict and the banner both offer it.
    await page.getByRole('button', { name: 'Unhalt project' }).last().click()
    await page.getByText(/^Gardener finished in/).waitFor()
    await banner.waitFor({ state: 'detached' })
    assert.deepEqual(troubles, [])
  })

  inSystem('a run without tokens is topped up on its page', async (t) => {
    const poor = await kit.api<Agent>(`POST ${kit.path}/agents`, {
      name: 'Pauper',
      prompt: 'Spend.',
      model: { provider: 'planned', name: 'any' },
      tools: ['object_search'],
      token_allocation: 10,
    })
    const steps = [{ say: 'All.', calls: [{ name: 'object_search', args: {} }] }, { say: 'Rich now.' }]
    const { id } = await kit.trigger({ tag: 'poor', steps }, {}, poor)
    const { page, troubles } = await kit.open(t, `/runs/${id}`)
    await page.getByText('Pauper has used its tokens.').waitFor()
    await page.getByRole('button', { name: 'Top up' }).click()
    await until(
      async () => (await kit.api<Agent>(`GET ${kit.path}/agents/${poor.id}`)).token_allocation === 10_010,
      'the agent has more tokens',
    )
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
    await page.getByText(/^Pauper finished in/).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('axe finds nothing on the list and on a run, dark and light, on a desktop and on a phone', async (t) => {
    const run = await kit.play({
      tag: 'axe',
      steps: [{ say: 'I look.', calls: [{ name: 'object_search', args: { q: 'x' } }] }, { say: '| a |\n|---|\n| b |' }],
    })
    const { page } = await kit.open(t, '/runs')
    for (const place of ['/runs', `/runs/${run.id}`]) {
      await kit.checkLooks(page, place, () => page.getByText('completed').first().waitFor())
    }
  })

  inSystem('an unknown run says so, and a viewer is offered nothing that they may not do', async (t) => {
    const run = await kit.play({ tag: 'seen', steps: [{ say: 'Look.' }] })
    const { page } = await kit.open(t, `/runs/${kit.agent.id}`)
    await page.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
    const viewer = await kit.invite('viewer')
    const { page: theirs } = await kit.open(t, `/runs/${run.id}`, viewer)
    await theirs.getByText(/finished in/).waitFor()
    assert.equal(await theirs.getByRole('button', { name: 'Trigger' }).count(), 0)
    assert.equal(await theirs.getByRole('button', { name: /Fork from here/ }).count(), 0)
  })
})
