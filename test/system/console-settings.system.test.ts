// The settings of a project in a real browser, against a real server.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { AuditEntry, Key, Member } from '../../src/kernel/access.ts'
import type { McpServer } from '../../src/kernel/mcp-server.ts'
import type { Project, Settings } from '../../src/kernel/project.ts'
import type { Provider } from '../../src/kernel/provider.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, untilCount } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { startMcpHttp } from '../kit/mcp-http.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

type Items<Item> = { items: Item[] }

describe('the settings in a browser', { skip }, () => {
  test('a provider is added with its key, tested, changed and deleted', async (t) => {
    const { page, troubles } = await kit.open(t, '/settings')
    await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor()
    assert.ok(page.url().endsWith('/settings/providers'), page.url())
    await page.getByRole('button', { name: 'Add provider' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add provider' })
    await dialog.getByLabel('Kind').click()
    await page.getByRole('option', { name: /OpenAI-compatible/ }).click()
    assert.equal(await dialog.getByLabel('Name').inputValue(), 'openai-compatible', 'the name follows the kind')
    await dialog.getByLabel('Name').fill('Not A Name')
    await dialog.getByLabel('Base URL').fill(kit.model.url)
    await dialog.getByLabel('API key').fill('a-secret-of-a-key')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText(/^Must be lower-case letters/).waitFor()
    assert.match(await problemOf(page, 'Name'), /^Must be lower-case letters/)
    assert.equal(await dialog.getByLabel('API key').inputValue(), 'a-secret-of-a-key', 'the typed values stay')
    await dialog.getByLabel('Name').fill('local')
    await dialog.getByLabel('Prices').fill('any 1 2.5')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The provider local is added.').waitFor()
    const row = page.getByRole('list', { name: 'Providers' }).getByRole('listitem').filter({ hasText: 'local' })
    await row.getByText(/key stored · 1 priced model/).waitFor()
    await row
      .getByRole('status')
      .getByText(/It works: any answered in|answered 400|local/)
      .waitFor()
    await page.getByRole('button', { name: 'Test local' }).click()
    await row.getByRole('status').getByText(/\S/).waitFor()
    await page.getByRole('button', { name: 'Edit local' }).click()
    const edit = page.getByRole('dialog', { name: 'Edit local' })
    await edit.getByLabel('Prices').fill('')
    await edit.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The provider local is changed.').waitFor()
    const stored = await kit.api<Provider>('GET /api/providers/local')
    assert.deepEqual([stored.prices, stored.has_api_key, stored.base_url], [{}, true, kit.model.url])
    await page.getByRole('button', { name: 'Delete local' }).click()
    await page
      .getByRole('dialog', { name: /Delete the provider local/ })
      .getByRole('button', { name: 'Delete' })
      .click()
    await page.getByText('The provider local is deleted.').waitFor()
    assert.equal((await kit.muster.call('GET /api/providers/local')).status, 404)
    assert.equal(await page.getByRole('button', { name: 'Delete offline' }).count(), 0, 'the built-in one stays')
    assert.deepEqual(troubles, [])
  })

  test('the default model is chosen', async (t) => {
    const { page, troubles } = await kit.open(t, '/settings/providers')
    const section = page.getByRole('region', { name: 'Default model' })
    await section.getByLabel('Provider').click()
    await page.getByRole('option', { name: 'planned' }).click()
    await section.getByLabel('Model').fill('a-model')
    await section.getByRole('button', { name: 'Save' }).click()
    await page.getByText('a-model of planned is the default model.').waitFor()
    const { default_model } = await kit.api<Settings>(`GET ${kit.path}/settings`)
    assert.deepEqual(default_model, { provider: 'planned', name: 'a-model' })
    assert.deepEqual(troubles, [])
  })

  test('a key is created and shown once, and revoked', async (t) => {
    const { page, troubles } = await kit.open(t, '/settings/keys')
    await page.getByText('No key yet.').waitFor()
    await page.getByRole('button', { name: 'Create key' }).click()
    const dialog = page.getByRole('dialog', { name: 'Create key' })
    await dialog.getByLabel('Name').fill('ci')
    await dialog.getByLabel('Ends').click()
    await page.getByRole('option', { name: 'in 30 days' }).click()
    await dialog.getByRole('button', { name: 'Create key' }).click()
    const shown = page.getByLabel('The key ci')
    const key = await shown.and(page.getByRole('textbox')).inputValue()
    const { items } = await kit.api<Items<Key>>(`GET ${kit.path}/keys`)
    assert.deepEqual(
      items.map(({ name, role, expires_at }) => [name, role, expires_at !== null]),
      [['ci', 'member', true]],
    )
    assert.equal((await kit.muster.call(`GET ${kit.path}`, { token: key })).status, 200)
    await page.getByRole('button', { name: 'Copy' }).waitFor()
    await page.reload()
    await page.getByRole('listitem').getByText('ci').waitFor()
    assert.equal(await page.getByText(key).count(), 0)
    await page.getByRole('button', { name: 'Revoke ci' }).click()
    await page.getByRole('dialog', { name: 'Revoke the key ci?' }).getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('The key ci is revoked.').waitFor()
    await page.getByText('No key yet.').waitFor()
    assert.deepEqual(troubles, [])
  })

  test('a person is invited by a link, gets another role and a reset link, and is removed', async (t) => {
    await kit.invite('viewer')
    const { page, troubles } = await kit.open(t, '/settings/members')
    await page.getByRole('button', { name: 'Invite' }).click()
    const dialog = page.getByRole('dialog', { name: 'Invite' })
    await dialog.getByLabel('Email').fill('new@example')
    await dialog.getByRole('button', { name: 'Invite' }).click()
    await dialog.getByText('Must be an email address.').waitFor()
    assert.equal(await problemOf(page, 'Email'), 'Must be an email address.')
    await dialog.getByLabel('Email').fill('new@example.com')
    await dialog.getByLabel('Role').click()
    await page.getByRole('option', { name: /^viewer/ }).click()
    await dialog.getByRole('button', { name: 'Invite' }).click()
    const link = page.getByRole('textbox', { name: 'The invitation for new@example.com' })
    assert.match(await link.inputValue(), /\/invitations\//)
    const invited = page.getByRole('listitem').filter({ hasText: 'new@example.com' })
    await invited.getByText('invited').waitFor()
    const theirs = page.getByRole('listitem').filter({ hasText: 'viewer@example.com' })
    await theirs.getByLabel('Role of viewer@example.com').click()
    await page.getByRole('option', { name: 'member' }).click()
    await page.getByText('viewer@example.com is member now.').waitFor()
    const roleNow = async (email: string): Promise<string | undefined> =>
      (await kit.api<Items<Member>>(`GET ${kit.path}/members`)).items.find((member) => member.email === email)?.role
    assert.equal(await roleNow('viewer@example.com'), 'member')
    await page.getByRole('button', { name: 'Reset link for viewer@example.com' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Make the link' }).click()
    const reset = page.getByRole('textbox', { name: 'The reset link for viewer@example.com' })
    assert.match(await reset.inputValue(), /\/resets\//)
    for (const email of ['viewer@example.com', 'new@example.com']) {
      await page.getByRole('button', { name: `Remove ${email}` }).click()
      await page
        .getByRole('dialog', { name: `Remove ${email}?` })
        .getByRole('button', { name: 'Remove' })
        .click()
      await page.getByText(`${email} is removed.`).waitFor()
      assert.equal(await roleNow(email), undefined)
    }
    assert.deepEqual(troubles, [])
  })

  test('limits are changed and saved, and the project is halted and unhalted after one question', async (t) => {
    const { page, troubles } = await kit.open(t, '/settings/limits')
    const save = page.getByRole('button', { name: 'Save' })
    await page.getByLabel('Tokens per month').fill('5000000')
    await page.getByLabel('A tool call').fill('90')
    await page.getByText('2 limits are changed and not saved yet.').waitFor()
    await page.getByLabel('Tokens per month').fill('-5')
    await save.click()
    await page.getByText(/must be at least 0/i).waitFor()
    await page.getByLabel('Tokens per month').fill('')
    await page.getByLabel('Tokens per month').pressSequentially('-5')
    assert.equal(await page.getByLabel('Tokens per month').inputValue(), '-5')
    await page.getByLabel('Tokens per month').fill('-')
    await page.getByLabel('Tokens per month').press('Enter')
    await page.getByText('Must be a number, not a text.').waitFor()
    await page.getByLabel('Tokens per month').fill('5000000')
    await save.click()
    await page.getByText('The limits are saved.').waitFor()
    const settings = await kit.api<Settings>(`GET ${kit.path}/settings`)
    assert.deepEqual([settings.monthly_token_limit, settings.tool_timeout], [5_000_000, 90_000])
    await page.getByLabel('Between two looks for tasks').fill('0.05')
    await page.getByLabel('Slow from so many times the expected').fill('0.5')
    await page.getByLabel('Identical calls: stopped at').fill('2.5')
    await save.click()
    const said = (label: string): Promise<string> => problemOf(page, label)
    await page.getByText('Must be at least 0.1 s.').waitFor()
    assert.equal(await said('Between two looks for tasks'), 'Must be at least 0.1 s.')
    assert.equal(await said('Slow from so many times the expected'), 'Must be at least 1.')
    assert.equal(await said('Identical calls: stopped at'), 'Must be a whole number.')
    assert.equal(await page.getByRole('main').getByRole('alert').count(), 0, 'all is said at the fields')
    assert.equal(await page.getByLabel('Between two looks for tasks').inputValue(), '0.05 s')
    await until(async () => (await focusedLabel(page)) === 'Identical calls: stopped at', 'the first one has the focus')
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByLabel('Identical calls: stopped at').fill('2')
    await save.click()
    await page.getByText('Must not be below “Identical calls: refused from”.').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByLabel('Tokens per month').fill('')
    await save.click()
    const isHalted = async (): Promise<boolean> => (await kit.api<Project>(`GET ${kit.path}`)).halted_at !== null
    for (const verb of ['Halt', 'Unhalt']) {
      const section = page.getByRole('region', { name: 'Off switch' })
      await section.getByRole('button', { name: `${verb} project` }).click()
      const question = page.getByRole('dialog', { name: `${verb} Garden?` })
      await question.getByRole('button', { name: `${verb} project` }).click()
      await page.getByText(verb === 'Halt' ? 'The project is halted.' : 'The project goes on.').waitFor()
      assert.equal(await isHalted(), verb === 'Halt')
    }
    assert.equal((await kit.api<Settings>(`GET ${kit.path}/settings`)).monthly_token_limit, null)
    assert.deepEqual(troubles, [])
  })

  test('a project is renamed, and another one deleted', async (t) => {
    const { page, troubles } = await kit.open(t, '/settings/limits')
    const section = page.getByRole('region', { name: 'Project' })
    await section.getByLabel('Name').fill('Orchard')
    await section.getByRole('button', { name: 'Rename' }).click()
    await page.getByText('The name is changed.').waitFor()
    assert.equal((await kit.api<Project>(`GET ${kit.path}`)).name, 'Orchard')
    await kit.muster.call(`PATCH ${kit.path}`, { body: { name: 'Garden' } })
    const { id } = await kit.api<Project>('POST /api/projects', { name: 'Spare' })
    await page.goto(`${kit.muster.url}/projects/${id}/settings/limits`)
    await page.getByRole('button', { name: 'Delete project' }).click()
    const question = page.getByRole('dialog', { name: 'Delete Spare?' })
    await question.getByRole('button', { name: 'Delete project' }).click()
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
    assert.equal((await kit.muster.call(`GET /api/projects/${id}`)).status, 404)
    assert.deepEqual(troubles, [])
  })

  test('an MCP server is added, shows its tools, is approved after a change, and deleted', async (t) => {
    const mcp = await startMcpHttp()
    const { page, troubles } = await kit.open(t, '/settings/mcp')
    await page.getByText('No MCP server yet.').waitFor()
    await page.getByRole('button', { name: 'Add server' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add MCP server' })
    await dialog.getByLabel('Name').fill('fixture')
    await dialog.getByLabel('URL').fill(mcp.url)
    await dialog.getByLabel('Headers').fill('no separator')
    await dialog.getByRole('button', { name: 'Add server' }).click()
    await dialog.getByText(/is not a name/).waitFor()
    await dialog.getByLabel('Headers').fill('X-Token: abc')
    await dialog.getByRole('button', { name: 'Add server' }).click()
    await page.getByText(/The MCP server fixture is added, with \d+ tools/).waitFor()
    assert.equal(mcp.lastHeaders['x-token'], 'abc')
    await page.getByText(/approved tools/).click()
    await page.getByRole('list', { name: 'Tools of fixture' }).getByText('echo', { exact: true }).waitFor()
    mcp.description = 'Changed meanwhile.'
    mcp.forgetSessions()
    const stale = await kit.muster.call(`POST ${kit.path}/mcp-servers/fixture/approve`, { body: { hashes: ['x'] } })
    assert.equal(stale.status, 409)
    await page.reload()
    await page.getByRole('list', { name: 'Changes of fixture' }).getByText('Changed meanwhile.').waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('The tools of fixture are approved.').waitFor()
    const server = await kit.api<McpServer>(`GET ${kit.path}/mcp-servers/fixture`)
    assert.equal(server.pending_tools, null)
    await page.getByRole('button', { name: 'Delete fixture' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No MCP server yet.').waitFor()
    assert.deepEqual(troubles, [])
  })

  test('the audit is filtered by action and person in the address, read page by page, and verified', async (t) => {
    for (let at = 0; at < 60; at++) await kit.api(`POST ${kit.path}/objects`, { type: 'bed', properties: { at } })
    const { page, troubles } = await kit.open(t, '/settings/audit')
    const list = page.getByRole('list', { name: 'Audit entries, newest first' })
    await list.getByText('object.create').first().waitFor()
    const rows = list.getByRole('listitem')
    await untilCount(rows, 50)
    await page.getByRole('button', { name: 'More' }).click()
    await rows.nth(60).waitFor()
    await page.getByRole('button', { name: 'Verify the chain' }).click()
    await page.getByText(/^The chain holds: /).waitFor()
    await page.getByLabel('Who').fill('Instance admin')
    await page.waitForURL(/who=Instance/)
    await rows.nth(40).waitFor()
    await page.getByLabel('Action').fill('no.such_action')
    await page.getByText('No entry matches.').waitFor()
    await page.getByLabel('Who').fill('nobody@example.com')
    await page.waitForURL(/who=nobody/)
    assert.equal(new URL(page.url()).searchParams.get('action'), 'no.such_action')
    await page.reload()
    await page.getByText('No entry matches.').waitFor()
    assert.equal(await page.getByLabel('Who').inputValue(), 'nobody@example.com')
    const { items } = await kit.api<Items<AuditEntry>>(`GET ${kit.path}/audit`)
    assert.equal(items[0]?.action, 'object.create')
    assert.deepEqual(troubles, [])
  })

  test('a person sets a password and ends another session', async (t) => {
    const member = await kit.invite('member')
    const again = await kit.muster.call('POST /api/auth/sign-in', {
      body: { email: 'member@example.com', password: 'long enough' },
      token: null,
      headers: { origin: kit.muster.url, 'user-agent': 'curl/8.5.0' },
    })
    assert.equal(again.status, 200)
    const { page, troubles } = await kit.open(t, '/settings/account', member)
    const sessions = page.getByRole('list', { name: 'Sessions' })
    await sessions.getByText('curl').waitFor()
    await sessions.getByRole('button', { name: 'End' }).first().click()
    await page.getByRole('dialog').getByRole('button', { name: 'End session' }).click()
    await page.getByText('The session has ended.').waitFor()
    await page.getByRole('textbox', { name: 'Current password' }).fill('wrong password')
    await page.getByRole('textbox', { name: 'New password' }).fill('even longer')
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByText(/^Is not the password/).waitFor()
    await page.getByRole('textbox', { name: 'Current password' }).fill('long enough')
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByText('The password is set.').waitFor()
    const login = (password: string) =>
      kit.muster.call('POST /api/auth/sign-in', {
        body: { email: 'member@example.com', password },
        token: null,
        headers: { origin: kit.muster.url },
      })
    assert.deepEqual([(await login('long enough')).status, (await login('even longer')).status], [401, 200])
    assert.deepEqual(troubles, [])
  })

  test('a member sees what they may read, and is offered nothing that they may not do', async (t) => {
    const { items } = await kit.api<Items<Member>>(`GET ${kit.path}/members`)
    const old = items.find(({ email }) => email === 'member@example.com')
    if (old) await kit.muster.call(`DELETE ${kit.path}/members/${old.id}`)
    const admin = await kit.invite('admin')
    const { page: theirs, troubles } = await kit.open(t, '/settings/providers', admin)
    await theirs.getByText('Providers belong to the whole instance.').waitFor()
    assert.equal(await theirs.getByRole('button', { name: 'Add provider' }).count(), 0)
    await theirs.getByRole('link', { name: 'Keys' }).click()
    await theirs.getByRole('button', { name: 'Create key' }).waitFor()
    const person = (await kit.api<Items<Member>>(`GET ${kit.path}/members`)).items.find(
      ({ email }) => email === 'admin@example.com',
    )
    await kit.muster.call(`PATCH ${kit.path}/members/${person?.id}`, { body: { role: 'viewer' } })
    await kit.goTo(theirs, '/settings/keys')
    await theirs.getByText('Only admins of the project see this.').waitFor()
    const tabs = theirs.getByRole('navigation', { name: 'Settings' })
    assert.equal(await tabs.getByRole('link', { name: 'Audit' }).count(), 0)
    await tabs.getByRole('link', { name: 'Limits' }).click()
    await theirs.getByLabel('Tokens per month').waitFor()
    assert.equal(await theirs.getByRole('button', { name: 'Save' }).count(), 0)
    assert.equal(await theirs.getByRole('button', { name: 'Halt project' }).count(), 0)
    await tabs.getByRole('link', { name: 'Members' }).click()
    await theirs.getByRole('list', { name: 'Members' }).waitFor()
    assert.equal(await theirs.getByRole('button', { name: 'Invite' }).count(), 0)
    await kit.goTo(theirs, '/settings/nonsense')
    await theirs.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('axe finds nothing in any section, and no section scrolls sideways on a phone', async (t) => {
    await kit.api(`POST ${kit.path}/keys`, { name: 'for axe', role: 'viewer' })
    const { page } = await kit.open(t, '/settings/keys')
    for (const [section, text] of [
      ['providers', 'planned'],
      ['mcp', 'No MCP server yet.'],
      ['keys', 'for axe'],
      ['members', 'Muster sends no mail'],
      ['limits', 'Tokens per month'],
      ['audit', 'key.create'],
      ['account', 'this one'],
    ] as const) {
      await kit.checkLooks(page, `/settings/${section}`, async () => {
        await page.getByText(text).first().waitFor()
        const wide = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth')
        assert.ok(Number(wide) <= 0, `${section} is ${wide} px wider than the window`)
      })
    }
  })
})

/** The problem that stands at a field, as a screen reader finds it. */
async function problemOf(page: Page, label: string): Promise<string> {
  const described = (await page.getByLabel(label).first().getAttribute('aria-describedby')) ?? ''
  const id = described.split(' ').find((each) => each.endsWith('-error'))
  return (id === undefined ? null : await page.locator(`[id="${id}"]`).textContent()) ?? ''
}

const focusedLabel = (page: Page): Promise<string> =>
  page.evaluate<string>('document.activeElement?.labels?.[0]?.textContent ?? ""')
