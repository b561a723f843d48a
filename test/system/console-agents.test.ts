// The pages of agents in a real browser, against a real server.
import assert from 'node:assert/strict'
import { before, describe } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import type { Agent } from '../../src/kernel/agent.ts'
import type { Hook } from '../../src/kernel/hook.ts'
import type { GraphObject, ProcessingEntry } from '../../src/kernel/object.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
const planned = { provider: 'planned', name: 'any' }
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

describe('the pages of agents in a browser', { skip }, () => {
  inSystem('the list shows what each agent is and did last, and leads to its page and to a new agent', async (t) => {
    const agent = await create({ name: 'Listed', role: 'in the list', execution_mode: 'suggest' })
    const run = await kit.trigger({ tag: 'listed', steps: [{ say: 'Seen.' }] }, {}, agent)
    await until(async () => (await kit.readRun(run.id)).completed_at !== null, 'the run ends')
    const stopped = await create({ name: 'Stopped', trigger_type: 'schedule', cron_schedule: '0 9 * * 1-5' })
    await kit.api(`POST ${kit.path}/agents/${stopped.id}/stop`, {})
    const { page, troubles } = await kit.open(t, '/agents')
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
    const row = (name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
    for (const text of ['in the list', 'active', 'manual', 'planned/any', 'suggest', 'completed']) {
      await row('Listed').getByText(text).waitFor()
    }
    for (const text of ['paused', '0 9 * * 1-5']) await row('Stopped').getByText(text).waitFor()
    await row('Listed').getByText('completed').click()
    await page.waitForURL(`**/runs/${run.id}`)
    await page.goBack()
    await row('Listed').getByRole('switch').click()
    await page.getByText('Listed is disabled.').waitFor()
    assert.equal((await read(agent)).enabled, false)
    await row('Listed').getByRole('link', { name: 'Listed' }).click()
    await page.getByRole('heading', { name: 'Listed', level: 1 }).waitFor()
    await page.goBack()
    await page.getByRole('button', { name: 'New agent' }).click()
    await page.getByRole('heading', { name: 'New agent', level: 1 }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('Agent Creation: every field; refusals stand beside them, and what was typed stays', async (t) => {
    const { page, troubles } = await kit.open(t, '/agents/new')
    await tellTimes(page)
    await page.getByLabel('Name').fill('Gardener')
    await page.getByLabel('Prompt', { exact: true }).fill('Report on the garden.')
    await box(page, 'Provider').fill('planed')
    await box(page, 'Model').fill('any')
    await box(page, 'Tools').fill('object_s')
    const tool = page.getByRole('option', { name: /object_search/ })
    await tool.getByText('only reads').waitFor()
    await tool.click()
    await choose(page, 'Trigger', 'webhook')
    await choose(page, 'Trigger', 'schedule')
    await page.getByLabel('Schedule', { exact: true }).fill('0 9 * * 1-5')
    await box(page, 'Time zone').fill('Europe/Berlin')
    await page.getByRole('status', { name: 'Next times' }).getByRole('listitem').nth(4).waitFor()
    await page.getByLabel('Step limit').fill('12')
    await page.getByLabel('Timeout').fill('1.5')
    await page.getByLabel('Budget').fill('5000')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText(/^There is no provider called planed/).waitFor()
    await box(page, 'Provider').fill('planned')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('There is an agent called Gardener already.').waitFor()
    assert.equal(await page.evaluate('document.activeElement?.dataset.path'), 'name')
    await page.getByLabel('Name').fill('Reporter')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Reporter', level: 1 }).waitFor()
    const made = await find('Reporter')
    const { prompt, model, tools, trigger_type, cron_schedule, timezone, max_steps, default_timeout } = made
    assert.deepEqual(
      { prompt, model, tools, trigger_type, cron_schedule, timezone, max_steps, default_timeout },
      {
        prompt: 'Report on the garden.',
        model: { ...planned, max_output_tokens: 4_096 },
        tools: ['object_search'],
        trigger_type: 'schedule',
        cron_schedule: '0 9 * * 1-5',
        timezone: 'Europe/Berlin',
        max_steps: 12,
        default_timeout: 1_500,
      },
    )
    assert.equal(made.token_allocation, 5_000)
    assert.deepEqual(troubles, [])
  })

  inSystem('Trigger with an input leads to the run, which is shown live', async (t) => {
    const agent = await create({ name: 'Starter' })
    kit.model.hold('started')
    t.after(async () => kit.model.release('started'))
    const { page, troubles } = await kit.open(t, `/agents/${agent.id}`)
    await page.getByRole('button', { name: 'Trigger' }).click()
    const dialog = page.getByRole('dialog', { name: 'Trigger Starter' })
    await dialog.getByText('JSON', { exact: true }).click()
    await dialog.getByLabel('Input').fill('{"tag": ')
    await dialog.getByRole('button', { name: 'Trigger' }).click()
    await dialog.getByText(/^This is no JSON/).waitFor()
    const plan = { tag: 'started', steps: [{ say: 'I begin here.', gate: 'started' }] }
    await dialog.getByLabel('Input').fill(JSON.stringify(plan))
    await dialog.getByLabel('Step limit').fill('3')
    await dialog.getByRole('button', { name: 'Trigger' }).click()
    await page.waitForURL('**/runs/*')
    await page.getByRole('list', { name: 'Transcript' }).getByText('writing').waitFor()
    kit.model.release('started')
    await page.getByText(/^Starter finished in/).waitFor()
    const run = await kit.readRun(page.url().split('/').at(-1) ?? '')
    assert.deepEqual([run.input, run.max_steps], [plan, 3])
    await kit.goTo(page, `/agents/${agent.id}?tab=runs`)
    await page.getByRole('table', { name: 'Runs' }).getByRole('link', { name: 'completed' }).click()
    await page.waitForURL(`**/runs/${run.id}`)
    assert.deepEqual(troubles, [])
  })

  inSystem('Webhook Details: hooks are made, used, rotated and deleted; a secret is shown once', async (t) => {
    const agent = await create({ name: 'Hooked', trigger_type: 'webhook' })
    const hooks = `${kit.path}/agents/${agent.id}/hooks`
    const { page, troubles } = await kit.open(t, `/agents/${agent.id}`)
    await page.getByRole('tab', { name: 'Triggers' }).click()
    assert.equal(new URL(page.url()).searchParams.get('tab'), 'triggers')
    await page.getByText('No hook yet').waitFor()
    await page.getByLabel('Name').fill('linear')
    await page.getByRole('button', { name: 'Create hook' }).click()
    const made = page.getByRole('dialog', { name: 'The secret of linear' })
    const secret = await made.getByLabel('Secret', { exact: true }).inputValue()
    const url = await made.getByLabel('URL', { exact: true }).inputValue()
    await made.getByRole('button', { name: 'Copy Secret' }).waitFor()
    assert.equal(await deliver(url, secret), 202)
    await made.getByRole('button', { name: 'Done' }).click()
    const line = page.getByRole('list', { name: 'Hooks' }).getByRole('listitem', { name: 'linear' })
    assert.equal(await line.getByLabel('URL of linear', { exact: true }).inputValue(), url)

    await line.getByRole('button', { name: 'Rotate the secret of linear' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    const rotated = await made.getByLabel('Secret', { exact: true }).inputValue()
    assert.notEqual(rotated, secret)
    assert.equal(await deliver(url, rotated), 202)
    await made.getByRole('button', { name: 'Done' }).click()
    await line.getByText(/old secret until/).waitFor()

    await page.reload()
    await line.waitFor()
    assert.equal((await page.content()).includes('whsec_'), false, 'a secret is shown again')
    await line.getByRole('button', { name: 'Delete the hook linear' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No hook yet').waitFor()
    assert.deepEqual((await kit.api<{ items: Hook[] }>(`GET ${hooks}`)).items, [])
    assert.deepEqual(troubles, [])
  })

  inSystem('a saved form changes only what was changed', async (t) => {
    const senior = await create({ name: 'Chief' })
    const agent = await create({
      name: 'Rich',
      prompt: 'Two\nlines',
      tools: ['object_search', 'http_fetch'],
      max_steps: 7,
      model: { ...planned, temperature: 0, context_tokens: 9_000 },
      capabilities: { canDeleteObjects: false, allowedObjectTypes: [] },
      trigger_type: 'reaction',
      reaction_config: { objectTypes: ['*'], events: ['created'], concurrencyStrategy: 'parallel' },
      senior_id: senior.id,
      competencies: ['prose', 'law'],
      token_allocation: 0,
    })
    const { page, troubles } = await kit.open(t, `/agents/${agent.id}`)
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByRole('heading', { name: 'Edit Rich', level: 1 }).waitFor()
    assert.equal(await box(page, 'Senior').inputValue(), 'Chief')
    await page.getByLabel('Budget').fill('-')
    await page.getByLabel('Budget').press('Enter')
    await page.getByText('Must be a number, not a text.').waitFor()
    assert.equal(await page.getByLabel('Budget').inputValue(), '-')
    await page.getByRole('link', { name: 'Runs', exact: true }).click()
    await page.getByText('The changes of this agent are not saved.', { exact: false }).waitFor()
    await page.getByRole('button', { name: 'Stay' }).click()
    await page.getByLabel('Budget').fill('0')
    await choose(page, 'Trigger', 'webhook')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Rich', level: 1, exact: true }).waitFor()
    const after = await read(agent)
    const changing = { updated_at: '', last_polled_at: null }
    assert.deepEqual({ ...after, ...changing }, { ...agent, trigger_type: 'webhook', ...changing })
    assert.deepEqual(troubles, [])
  })

  inSystem('steps are added, moved and removed; a loop has rounds; a flow is picked from the list', async (t) => {
    const agent = await create({ name: 'Worker' })
    const { page, troubles } = await kit.open(t, `/agents/${agent.id}/edit`)
    await choose(page, 'How it works', 'sequential')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText(/a sequential agent needs them/).waitFor()
    for (const text of ['Last', 'First', 'Gone']) {
      await page.getByRole('button', { name: 'Add a step' }).click()
      await page
        .getByLabel(/^Step \d$/)
        .last()
        .fill(text)
    }
    await page.getByRole('button', { name: 'Remove step 3' }).click()
    await page.getByRole('button', { name: 'Move step 2 up' }).click()
    await page.getByRole('switch', { name: 'Only some tools' }).first().click()
    await box(page, 'Step 1 uses only').fill('object_get')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('list', { name: 'Steps' }).getByText('First').waitFor()
    assert.deepEqual((await read(agent)).steps, [{ prompt: 'First', tools: ['object_get'] }, { prompt: 'Last' }])

    await page.getByRole('button', { name: 'Edit' }).click()
    await choose(page, 'How it works', 'loop')
    await page.getByLabel('Most rounds').fill('4')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('a loop of 4 rounds at most').waitFor()

    await page.getByRole('button', { name: 'Edit' }).click()
    await choose(page, 'How it works', 'flow')
    await box(page, 'Flow').click()
    await page.getByRole('option', { name: /^research/ }).click()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('the flow research').waitFor()
    const { flow_type, flow, steps } = await read(agent)
    assert.deepEqual({ flow_type, flow, steps }, { flow_type: 'flow', flow: 'research', steps: [] })
    assert.deepEqual(troubles, [])
  })

  inSystem('rights, reaction filters and the place in the organisation are set', async (t) => {
    await create({ name: 'Boss' })
    const { page, troubles } = await kit.open(t, '/agents/new')
    await page.getByLabel('Name').fill('Steward')
    await choose(page, 'Trigger', 'reaction')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Must not be empty.').waitFor()
    await box(page, 'Object types').fill('Person, City')
    await box(page, 'Object types').press('Enter')
    await page.getByRole('checkbox', { name: 'deleted' }).uncheck()
    await page.getByRole('switch', { name: 'Ignore changes that any agent made' }).click()
    await choose(page, 'While it works on the object', 'start a run for each event')
    await choose(page, 'Execution mode', 'suggest')
    await page.getByRole('checkbox', { name: 'May delete objects' }).uncheck()
    await page.getByRole('checkbox', { name: 'Objects of all types' }).uncheck()
    await box(page, 'Only these types').fill('Person')
    await choose(page, 'Senior', 'Boss')
    await box(page, 'Competencies').fill('care')
    await box(page, 'Competencies').press('Enter')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Steward', level: 1 }).waitFor()
    const made = await find('Steward')
    assert.deepEqual(made.reaction_config, {
      objectTypes: ['Person', 'City'],
      events: ['created', 'updated'],
      ignoreSelfTriggered: true,
      ignoreAgentTriggered: true,
      concurrencyStrategy: 'parallel',
    })
    assert.deepEqual(made.capabilities, {
      canCreateObjects: true,
      canUpdateObjects: true,
      canDeleteObjects: false,
      allowedObjectTypes: ['Person'],
    })
    const boss = await find('Boss')
    assert.deepEqual([made.execution_mode, made.senior_id, made.competencies], ['suggest', boss.id, ['care']])
    await page.getByRole('link', { name: 'Boss' }).waitFor()
    await page.getByRole('tab', { name: 'Triggers' }).click()
    const reaction = page.getByRole('region', { name: 'Reaction' })
    for (const text of ['Person', 'City', "its own changes, all agents' changes"])
      await reaction.getByText(text).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('the JSON view has the same definition, in both directions', async (t) => {
    const { page, troubles } = await kit.open(t, '/agents/new')
    await page.getByLabel('Name').fill('By hand')
    await page.getByText('JSON', { exact: true }).click()
    const text = page.getByLabel('Definition')
    const definition = JSON.parse(await text.inputValue())
    assert.equal(definition.name, 'By hand')
    await text.fill('{"name": "By hand", "max_stepz": 3}')
    await page.getByText('Form', { exact: true }).click()
    await page.getByText('Did you mean "max_steps"?').waitFor()
    await text.fill(JSON.stringify({ ...definition, max_steps: 3, tools: ['object_get'] }))
    await page.getByText('Form', { exact: true }).click()
    assert.equal(await page.getByLabel('Step limit').inputValue(), '3')
    await page.getByText('JSON', { exact: true }).click()
    await text.fill(JSON.stringify({ name: 'By hand', tools: ['objectget'] }))
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText(/There is no tool called "objectget"/).waitFor()
    await text.fill(JSON.stringify({ name: 'By hand', tools: ['object_get'], model: planned }))
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'By hand', level: 1 }).waitFor()
    assert.deepEqual((await find('By hand')).tools, ['object_get'])
    assert.deepEqual(troubles, [])
  })

  inSystem('an agent is disabled, copied, and deleted only after a question', async (t) => {
    const agent = await create({ name: 'Spare', prompt: 'Wait.', max_steps: 4 })
    const { page, troubles } = await kit.open(t, `/agents/${agent.id}`)
    const more = async (item: string): Promise<void> => {
      await page.getByRole('button', { name: 'More actions' }).click()
      await page.getByRole('menuitem', { name: item }).click()
    }
    await more('Disable')
    await page.getByText('disabled', { exact: true }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Trigger' }).isDisabled(), true)
    await more('Enable')
    await page.getByText('enabled', { exact: true }).waitFor()
    assert.equal((await read(agent)).enabled, true)
    await more('Duplicate')
    await page.getByRole('heading', { name: 'New agent' }).waitFor()
    assert.equal(await page.getByLabel('Name').inputValue(), 'Spare copy')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Spare copy', level: 1 }).waitFor()
    assert.equal((await find('Spare copy')).max_steps, 4)
    await more('Delete')
    await page.getByRole('dialog', { name: 'Delete Spare copy?' }).getByRole('button', { name: 'Cancel' }).click()
    await more('Delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
    const names = (await kit.api<{ items: Agent[] }>(`GET ${kit.path}/agents?limit=200`)).items.map(({ name }) => name)
    assert.deepEqual([names.includes('Spare'), names.includes('Spare copy')], [true, false])
    assert.deepEqual(troubles, [])
  })

  inSystem('the budget is amber at 90 %, red at 95 %, and topped up', async (t) => {
    // The first step of the planned model takes 112 tokens.
    const agent = await create({ name: 'Spender', token_allocation: 120 })
    const run = await kit.trigger({ tag: 'spent', steps: [{ say: 'Spent.' }] }, {}, agent)
    await until(async () => (await kit.readRun(run.id)).completed_at !== null, 'the run ends')
    const { page, troubles } = await kit.open(t, `/agents/${agent.id}?tab=budget`)
    await page.getByText('112 of 120 tokens used (93 %)').waitFor()
    await page.locator('[data-tone="blocked"]').waitFor()
    await kit.api(`PATCH ${kit.path}/agents/${agent.id}`, { token_allocation: 115 })
    await page.reload()
    await page.locator('[data-tone="failed"]').waitFor()
    await page.getByText('The tokens are almost used up.').waitFor()
    await page.getByLabel('Tokens').fill('885')
    await page.getByRole('button', { name: 'Top up' }).click()
    await page.getByText('112 of 1.0k tokens used (11 %)').waitFor()
    assert.equal((await read(agent)).token_allocation, 1_000)
    const free = await create({ name: 'Free' })
    await kit.goTo(page, `/agents/${free.id}?tab=budget`)
    await page.getByLabel('Tokens in all').fill('2000')
    await page.getByRole('button', { name: 'Set a limit' }).click()
    await page.getByText('0 of 2.0k tokens used').waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('a failed entry of the processing log is tried again', async (t) => {
    // The input of a reaction is no plan, so that the model refuses it.
    const agent = await create({
      name: 'Reactor',
      trigger_type: 'reaction',
      reaction_config: { objectTypes: ['Rose'] },
    })
    const log = `GET ${kit.path}/agents/${agent.id}/processing-log`
    const entry = async () => (await kit.api<{ items: ProcessingEntry[] }>(log)).items[0]
    const { page, troubles } = await kit.open(t, `/agents/${agent.id}?tab=log`)
    await page.getByText('No change of an object has concerned it yet.').waitFor()
    await kit.api<GraphObject>(`POST ${kit.path}/objects`, { type: 'Rose', properties: { n: 1 } })
    const row = page.getByRole('table', { name: 'Processing log' }).getByRole('row').nth(1)
    await row.getByText('failed').waitFor()
    await row.getByRole('link', { name: 'object created' }).waitFor()
    const first = (await entry())?.run_id
    await row.getByRole('button', { name: 'Retry' }).click()
    await page.getByText('The event is tried again.').waitFor()
    await until(async () => (await entry())?.run_id !== first, 'the entry has a new run')
    await row.getByText('failed').waitFor()
    await row.getByRole('link', { name: 'run' }).click()
    await page.waitForURL('**/runs/*')
    assert.deepEqual(troubles, [])
  })

  inSystem('a schedule shows its next five times; one that is never due says so beside its field', async (t) => {
    const agent = await create({ name: 'Clockwork', trigger_type: 'schedule', cron_schedule: '0 9 * * *' })
    const { page, troubles } = await kit.open(t, '/agents/new')
    await tellTimes(page)
    await kit.goTo(page, `/agents/${agent.id}?tab=triggers`)
    await page.getByRole('status', { name: 'Next times' }).getByRole('listitem').nth(4).waitFor()
    await kit.goTo(page, `/agents/${agent.id}/edit`)
    await page.getByLabel('Schedule', { exact: true }).fill('0 0 30 2 *')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText(/^Nothing is due in the next 8 years/).waitFor()
    await page.getByLabel('Schedule', { exact: true }).fill('0 10 * * *')
    await box(page, 'Time zone').fill('Europe/Berlln')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText(/Did you mean "Europe\/Berlin"/).waitFor()
    assert.deepEqual(troubles, [])
  })

  inSystem('an agent of the app module is read-only but for enabled', async (t) => {
    const agent = await create({ name: 'Coded', prompt: 'By code.' })
    const { page, troubles } = await kit.open(t, '/agents')
    await page.route(`**/api/projects/*/agents/${agent.id}`, async (route) => {
      const answer = await route.fetch()
      await route.fulfill({ response: answer, json: { ...(await answer.json()), source: 'app' } })
    })
    await kit.goTo(page, `/agents/${agent.id}/edit`)
    await page.getByText(/follows the code of the app module/).waitFor()
    assert.equal(await page.getByLabel('Name').isDisabled(), true)
    assert.equal(await page.getByLabel('Prompt', { exact: true }).isDisabled(), true)
    await page.getByRole('switch', { name: 'Enabled' }).click()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('from the app').waitFor()
    assert.equal((await read(agent)).enabled, false)
    assert.deepEqual(troubles, [])
  })

  inSystem('members trigger and do not edit; viewers only read; unknown agents say so', async (t) => {
    const agent = await create({ name: 'Shown', trigger_type: 'webhook', token_allocation: 50 })
    await kit.api(`POST ${kit.path}/agents/${agent.id}/hooks`, { name: 'github' })
    const member = await kit.open(t, `/agents/${agent.id}?tab=triggers`, await kit.invite('member'))
    await member.page.getByLabel('URL of github', { exact: true }).waitFor()
    assert.deepEqual(await buttonsOf(member.page), ['Trigger', 'Copy URL of github'])
    const viewer = await kit.open(t, `/agents/${agent.id}?tab=triggers`, await kit.invite('viewer'))
    await viewer.page.getByLabel('URL of github', { exact: true }).waitFor()
    assert.deepEqual(await buttonsOf(viewer.page), ['Copy URL of github'])
    for (const [place, shown] of [
      [`/agents/${agent.id}?tab=budget`, 'of 50 tokens used'],
      ['/agents', 'Shown'],
      ['/agents/new', 'Only admins of the project make agents.'],
      [`/agents/${agent.id}/edit`, 'Only admins of the project edit agents.'],
    ] as const) {
      await kit.goTo(viewer.page, place)
      await viewer.page.getByRole('main').getByText(shown).first().waitFor()
      assert.deepEqual(await buttonsOf(viewer.page), [], place)
      assert.equal(await viewer.page.getByRole('main').getByRole('switch').count(), 0)
    }
    for (const rest of ['', '/edit']) {
      await kit.goTo(viewer.page, `/agents/${kit.project}${rest}`)
      await viewer.page.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
    }
    assert.deepEqual([...member.troubles, ...viewer.troubles], [])
  })

  inSystem('texts of people are shown literally', async (t) => {
    const evil = `<img src="http://evil.invalid/a.png" onerror="alert(1)"><script>alert(3)</script>`
    const agent = await create({
      name: evil,
      role: evil,
      prompt: evil,
      competencies: ['javascript:alert(4)'],
      trigger_type: 'webhook',
    })
    await kit.api(`POST ${kit.path}/agents/${agent.id}/hooks`, { name: evil })
    const { page, troubles } = await kit.open(t, '/agents')
    for (const [place, shown] of [
      ['/agents', page.getByText(evil).first()],
      [`/agents/${agent.id}`, page.getByRole('heading', { name: evil })],
      [`/agents/${agent.id}?tab=triggers`, page.getByLabel(`URL of ${evil}`, { exact: true })],
      [`/agents/${agent.id}/edit`, page.getByLabel('Prompt', { exact: true })],
    ] as const) {
      await kit.goTo(page, place)
      await shown.waitFor()
      const made = page.locator('main').locator('img, script, iframe, [onerror], [href^="javascript:"]')
      assert.equal(await made.count(), 0)
    }
    await kit.api(`DELETE ${kit.path}/agents/${agent.id}`)
    assert.deepEqual(troubles, [])
  })

  inSystem('axe finds nothing on the pages of agents, dark and light, on a desktop and on a phone', async (t) => {
    const agent = await create({
      name: 'Looked at',
      role: 'Shows everything',
      prompt: 'Be seen.',
      tools: ['object_search', 'http_fetch'],
      trigger_type: 'webhook',
      token_allocation: 1_000,
      competencies: ['looks'],
    })
    await kit.api(`POST ${kit.path}/agents/${agent.id}/hooks`, { name: 'github' })
    const { page } = await kit.open(t, '/agents')
    for (const [place, shown] of [
      ['/agents', page.getByRole('link', { name: 'Looked at' })],
      ['/agents/new', page.getByLabel('Budget')],
      [`/agents/${agent.id}/edit`, page.getByText('only reads')],
      [`/agents/${agent.id}`, page.getByText('Be seen.').first()],
      [`/agents/${agent.id}?tab=triggers`, page.getByLabel('URL of github', { exact: true })],
      [`/agents/${agent.id}?tab=runs`, page.getByText('It has not run yet')],
      [`/agents/${agent.id}?tab=budget`, page.getByText('of 1.0k tokens used')],
      [`/agents/${agent.id}?tab=log`, page.getByText('Only agents that react')],
    ] as [string, Locator][]) {
      await kit.checkLooks(page, place, () => shown.waitFor())
    }
  })
})

const create = (fields: Record<string, unknown>): Promise<Agent> =>
  kit.api<Agent>(`POST ${kit.path}/agents`, { model: planned, ...fields })

const read = ({ id }: Agent): Promise<Agent> => kit.api<Agent>(`GET ${kit.path}/agents/${id}`)

async function find(name: string): Promise<Agent> {
  const { items } = await kit.api<{ items: Agent[] }>(`GET ${kit.path}/agents?limit=200`)
  return items.find((agent) => agent.name === name) ?? assert.fail(`there is no agent ${name}`)
}

/** A field with a list to choose from. */
const box = (page: Page, name: string): Locator => page.getByRole('combobox', { name, exact: true })

async function choose(page: Page, label: string, option: string): Promise<void> {
  await box(page, label).click()
  await page.getByRole('option', { name: option, exact: true }).click()
}

async function deliver(url: string, secret: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  return (await fetch(url, { method: 'POST', headers, body: '{}' })).status
}

/** Five times in place of a missing route; where Muster has the route, its own times are shown. */
async function tellTimes(page: Page): Promise<void> {
  await page.route('**/schedule/preview?*', async (route) => {
    const answer = await route.fetch()
    if (answer.status() !== 404) return route.fulfill({ response: answer })
    const items = [1, 2, 3, 4, 5].map((day) => `2030-01-0${day}T08:00:00.000Z`)
    await route.fulfill({ json: { cron_schedule: '', timezone: '', items } })
  })
}

/** The names of the buttons in the page, without those of the frame. */
const buttonsOf = (page: Page): Promise<string[]> =>
  page
    .getByRole('main')
    .locator('button:not([role="tab"])')
    .evaluateAll(
      // Runs in the page, where elements are.
      (found: { textContent: string; ariaLabel: string | null }[]) =>
        found.map((each) => each.ariaLabel ?? each.textContent ?? ''),
    )
