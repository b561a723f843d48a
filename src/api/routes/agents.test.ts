import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { type Agent, agentDefaults } from '../../kernel/agent.ts'
import { newId } from '../../kernel/id.ts'
import type { Run } from '../../kernel/run.ts'

const kit = await createTestApp()
const project = await kit.createProject()
const admin = (await kit.createKey(project.id, 'admin')).key
const path = `/api/projects/${project.id}/agents`
await kit.call('POST /api/providers', { body: { name: 'known', kind: 'offline' } })

interface Failure {
  error: { code: string; message: string }
}
const create = (body: object, headers: Record<string, string> = {}) =>
  kit.call<Agent & Failure>(`POST ${path}`, { token: admin, body, headers })
const patch = (id: string, body: object) => kit.call<Agent & Failure>(`PATCH ${path}/${id}`, { token: admin, body })

test('an agent needs nothing but a name; everything else has its default', async () => {
  const answer = await create({ name: 'plain' })
  assert.equal(answer.status, 201)
  const { id, project_id, created_at, updated_at, ...fields } = answer.body
  assert.equal(project_id, project.id)
  assert.equal(updated_at, created_at)
  assert.deepEqual(fields, {
    ...agentDefaults,
    name: 'plain',
    source: 'api',
    token_used: 0,
    status: 'active',
    paused_for: null,
    last_active_at: null,
    last_worked_at: null,
    last_polled_at: null,
  })
  assert.deepEqual((await kit.call(`GET ${path}/${id}`, { token: admin })).body, answer.body)
})

test('every given field is kept, and missing fields of nested objects get their defaults', async () => {
  const senior = (await create({ name: 'senior' })).body
  const given = {
    name: 'full',
    role: 'reviewer',
    prompt: 'You review.',
    model: { provider: 'known', name: 'm', temperature: 0.5, context_tokens: 9_000 },
    tools: ['http_fetch', 'ask_human'],
    flow_type: 'sequential',
    steps: [{ prompt: 'Read.', tools: ['http_fetch'] }, { prompt: 'Judge.' }],
    max_steps: 9,
    default_timeout: 60_000,
    trigger_type: 'reaction',
    cron_schedule: '*/5 9-17 * * 1-5',
    timezone: 'Europe/Berlin',
    catch_up: 'skip',
    reaction_config: { objectTypes: ['*'] },
    execution_mode: 'hybrid',
    capabilities: { canDeleteObjects: false, allowedObjectTypes: [] },
    senior_id: senior.id,
    competencies: ['law'],
    token_allocation: 1_000,
    enabled: false,
  }
  const { body } = await create(given)
  assert.deepEqual(
    { ...body, id: '' },
    {
      ...body,
      ...given,
      id: '',
      model: { ...given.model, max_output_tokens: 4_096 },
      reaction_config: {
        objectTypes: ['*'],
        events: ['created', 'updated', 'deleted'],
        ignoreSelfTriggered: true,
        ignoreAgentTriggered: false,
        concurrencyStrategy: 'skip',
      },
      capabilities: {
        canCreateObjects: true,
        canUpdateObjects: true,
        canDeleteObjects: false,
        allowedObjectTypes: [],
      },
    },
  )
})

test('a change leaves the other fields alone and replaces nested objects as a whole', async () => {
  const before = (
    await create({ name: 'changing', role: 'a', capabilities: { canCreateObjects: false, allowedObjectTypes: ['x'] } })
  ).body
  const after = (await patch(before.id, { role: 'b', capabilities: { canUpdateObjects: false } })).body
  assert.deepEqual(after, {
    ...before,
    role: 'b',
    capabilities: { canCreateObjects: true, canUpdateObjects: false, canDeleteObjects: true },
    updated_at: after.updated_at,
  })
  assert.deepEqual((await patch(before.id, {})).body, after)
})

test('"*" is refused as an object type, with a message that says how to allow all types', async () => {
  const capabilities = { allowedObjectTypes: ['Ticket', '*'] }
  const refused = await create({ name: 'starry', capabilities })
  assert.equal(refused.status, 400)
  assert.match(
    refused.body.error.message,
    /^body\.capabilities\.allowedObjectTypes\.1 must not be "\*": leave the list out/,
  )
  const { id } = (await create({ name: 'starry', capabilities: {} })).body
  assert.equal((await patch(id, { capabilities })).status, 400)
  // An agent stored before "*" was refused can still be disabled, and a list of types mends it.
  await kit.pool.query(
    `update agents set capabilities = capabilities || '{"allowedObjectTypes": ["*"]}' where id = $1`,
    [id],
  )
  assert.equal((await patch(id, { enabled: false })).status, 200)
  const mended = await patch(id, { capabilities: { allowedObjectTypes: ['Ticket'] } })
  assert.deepEqual(mended.body.capabilities.allowedObjectTypes, ['Ticket'])
})

test('an agent that names a tool that has gone can be switched off, and not on', async () => {
  const { id } = (await create({ name: 'bereft' })).body
  await kit.pool.query(`update agents set tools = '{gone}' where id = $1`, [id])
  const off = await patch(id, { enabled: false })
  assert.deepEqual([off.status, off.body.enabled], [200, false])
  assert.match((await patch(id, { enabled: true })).text, /There is no tool called .*gone/)
})

test('agents are listed newest first, a page at a time', async () => {
  const own = await kit.createProject()
  const names = ['one', 'two', 'three']
  for (const name of names) await kit.createAgent(own.id, { name })
  const list = `GET /api/projects/${own.id}/agents`
  type Page = { items: Agent[]; next_cursor: string | null }
  const first = (await kit.call<Page>(`${list}?limit=2`)).body
  const second = (await kit.call<Page>(`${list}?limit=2&cursor=${first.next_cursor}`)).body
  assert.deepEqual(
    [...first.items, ...second.items].map(({ name }) => name),
    names.toReversed(),
  )
  assert.equal(second.next_cursor, null)
})

test('a name belongs to one agent, and is free again when the agent is deleted', async () => {
  const first = (await create({ name: 'unique' })).body
  const second = await create({ name: 'unique' })
  assert.equal(second.status, 409)
  assert.equal(second.body.error.code, 'CONFLICT')
  const other = (await create({ name: 'other' })).body
  assert.equal((await patch(other.id, { name: 'unique' })).status, 409)
  assert.equal((await kit.call(`DELETE ${path}/${first.id}`, { token: admin })).status, 204)
  assert.equal((await kit.call(`GET ${path}/${first.id}`, { token: admin })).status, 404)
  assert.equal((await create({ name: 'unique' })).status, 201)
})

test('the runs of a deleted agent stay, and no more runs start', async () => {
  const agent = (await create({ name: 'leaving' })).body
  const run = await kit.call<Run>(`POST ${path}/${agent.id}/trigger`, {
    body: { input: 'x' },
    headers: { prefer: 'respond-async' },
  })
  await kit.call(`DELETE ${path}/${agent.id}`)
  assert.equal((await kit.call(`GET /api/projects/${project.id}/runs/${run.body.id}`)).status, 200)
  assert.equal((await kit.call(`POST ${path}/${agent.id}/trigger`, { body: { input: 'x' } })).status, 404)
})

test('the same Idempotency-Key makes one agent', async () => {
  const headers = { 'idempotency-key': 'agent' }
  const first = await create({ name: 'once' }, headers)
  const again = await create({ name: 'once' }, headers)
  assert.equal(again.status, 201)
  assert.equal(again.text, first.text)
})

const refused: { name: string; body: object; says: RegExp }[] = [
  { name: 'an unknown provider', body: { model: { provider: 'nope', name: 'm' } }, says: /no provider called nope/ },
  { name: 'an unknown tool', body: { tools: ['http_fetch', 'nope'] }, says: /no tool called "nope"/ },
  {
    name: 'an unknown tool of a step',
    body: { flow_type: 'sequential', steps: [{ prompt: 'a' }, { prompt: 'b', tools: ['nope'] }] },
    says: /no tool called "nope"/,
  },
  { name: 'an unknown MCP server', body: { tools: ['mcp:nope/*'] }, says: /no MCP server called "nope"/ },
  { name: 'four cron fields', body: { cron_schedule: '* * * *' }, says: /five fields/ },
  { name: 'six cron fields', body: { cron_schedule: '0 0 * * * *' }, says: /five fields/ },
  { name: 'a cron macro', body: { cron_schedule: '@daily' }, says: /five fields/ },
  { name: 'a day by name', body: { cron_schedule: '0 9 * * MON' }, says: /five fields/ },
  { name: 'an unknown time zone', body: { timezone: 'Mars/Olympus' }, says: /no time zone called Mars/ },
  { name: 'an offset as time zone', body: { timezone: '+02:00' }, says: /no time zone/ },
  { name: 'an empty time zone', body: { timezone: '' }, says: /no time zone/ },
  { name: 'a reaction without types', body: { trigger_type: 'reaction' }, says: /objectTypes/ },
  {
    name: 'a reaction with no types',
    body: { trigger_type: 'reaction', reaction_config: { objectTypes: [] } },
    says: /objectTypes/,
  },
  { name: 'a schedule without a time', body: { trigger_type: 'schedule' }, says: /cron_schedule/ },
  { name: 'an unknown senior', body: { senior_id: newId() }, says: /senior_id/ },
  { name: 'two prompts', body: { prompt: 'a', prompt_id: 'b' }, says: /exclude/ },
]

for (const { name, body, says } of refused) {
  test(`${name} is refused with a sentence, at creation and at a change`, async () => {
    const unique = newId()
    const made = await create({ name: unique, ...body })
    assert.equal(made.status, 400)
    assert.equal(made.body.error.code, 'INVALID_REQUEST')
    assert.match(made.body.error.message, says)
    const agent = (await create({ name: unique })).body
    const changed = await patch(agent.id, body)
    assert.equal(changed.status, 400)
    assert.match(changed.body.error.message, says)
    assert.deepEqual((await kit.call(`GET ${path}/${agent.id}`)).body, agent)
  })
}

test('the audit notes the author of a change to an agent', async () => {
  const { id } = (await create({ name: 'noted' })).body
  await patch(id, { role: 'x' })
  await kit.call(`DELETE ${path}/${id}`, { token: admin })
  const { rows } = await kit.pool.query('select action from audit_log where target_id = $1 order by seq', [id])
  assert.deepEqual(
    rows.map((row) => row.action),
    ['agent.create', 'agent.update', 'agent.delete'],
  )
})
