import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { type AgentInput, agentDefaults, agentInput } from '../kernel/agent.ts'
import { newId } from '../kernel/id.ts'
import { systemActor } from '../kernel/principal.ts'
import { type CheckNames, createAgent, deleteAgent, getAgent, listAgents, updateAgent } from './agents.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)
const everythingExists: CheckNames = async () => null
const by = { actor: systemActor, checkNames: everythingExists, onChanged: async () => {} }
const create = (input: AgentInput, project = projectId) => createAgent(pool, project, input, by)

test('an agent with only a name has the defaults of the contract', async () => {
  const agent = await create({ name: 'plain' })
  for (const [field, value] of Object.entries(agentDefaults)) assert.deepEqual(agent[field as 'role'], value, field)
  assert.equal(agent.status, 'active')
  assert.equal(agent.token_used, 0)
  assert.equal(agent.last_worked_at, null)
  assert.deepEqual(await getAgent(pool, projectId, agent.id), agent)
})

test('every field comes back as it was given; partial nested objects are filled with defaults', async () => {
  const senior = await create({ name: 'senior' })
  const input = agentInput.parse({
    name: 'full',
    role: 'researcher',
    prompt: 'Find things.',
    model: { provider: 'offline', name: 'offline', temperature: 0.5 },
    tools: ['http_fetch', 'mcp:files/read', 'mcp:web/*'],
    flow_type: 'sequential',
    steps: [{ prompt: 'first' }, { prompt: 'second', tools: [] }],
    max_steps: 7,
    default_timeout: 60_000,
    trigger_type: 'reaction',
    reaction_config: { objectTypes: ['Person'] },
    execution_mode: 'hybrid',
    capabilities: { canDeleteObjects: false, allowedObjectTypes: [] },
    senior_id: senior.id,
    competencies: ['sql', 'ünïcode'],
    token_allocation: 1_000_000,
    enabled: false,
  })
  const agent = await create(input)
  assert.deepEqual(agent.model, { provider: 'offline', name: 'offline', temperature: 0.5, max_output_tokens: 4096 })
  assert.deepEqual(agent.reaction_config, {
    objectTypes: ['Person'],
    events: ['created', 'updated', 'deleted'],
    ignoreSelfTriggered: true,
    ignoreAgentTriggered: false,
    concurrencyStrategy: 'skip',
  })
  assert.deepEqual(agent.capabilities, {
    canCreateObjects: true,
    canUpdateObjects: true,
    canDeleteObjects: false,
    allowedObjectTypes: [],
  })
  for (const field of ['tools', 'steps', 'competencies', 'token_allocation', 'senior_id', 'max_steps'] as const) {
    assert.deepEqual(agent[field], input[field], field)
  }
})

test('a loop agent that names no number of rounds shows the ten it has', async () => {
  const { id } = await create({ name: 'looping', flow_type: 'loop' })
  assert.equal((await getAgent(pool, projectId, id)).max_iterations, 10)
  const { items } = await listAgents(pool, projectId, { limit: 200 })
  assert.equal(items.find((agent) => agent.id === id)?.max_iterations, 10)
  assert.equal((await updateAgent(pool, projectId, id, { max_iterations: 3 }, by)).max_iterations, 3)
  assert.equal((await create({ name: 'not looping' })).max_iterations, null)
})

test('a patch keeps the fields it does not name, and replaces a nested object whole', async () => {
  const { id } = await create({ name: 'patched', prompt: 'old', competencies: ['a'] })
  await updateAgent(pool, projectId, id, { prompt: 'new', max_steps: 3 }, by)
  const capabilities = { canCreateObjects: true, canUpdateObjects: false, canDeleteObjects: true }
  const agent = await updateAgent(pool, projectId, id, { capabilities }, by)
  assert.equal(agent.prompt, 'new')
  assert.equal(agent.max_steps, 3)
  assert.deepEqual(agent.competencies, ['a'])
  assert.deepEqual(agent.capabilities, capabilities)
})

test('a name is taken once per project, until its agent is deleted', async () => {
  const first = await create({ name: 'taken' })
  await assert.rejects(create({ name: 'taken' }), { code: 'CONFLICT' })
  await create({ name: 'taken' }, await insertProject(pool, 'other'))
  const second = await create({ name: 'free' })
  await assert.rejects(updateAgent(pool, projectId, second.id, { name: 'taken' }, by), { code: 'CONFLICT' })
  await deleteAgent(pool, projectId, first.id, by)
  await updateAgent(pool, projectId, second.id, { name: 'taken' }, by)
  await assert.rejects(getAgent(pool, projectId, first.id), { code: 'NOT_FOUND' })
})

test('an agent of another project is unknown', async () => {
  const { id } = await create({ name: 'mine' })
  const other = await insertProject(pool, 'other')
  await assert.rejects(getAgent(pool, other, id), { code: 'NOT_FOUND' })
  await assert.rejects(updateAgent(pool, other, id, { name: 'x' }, by), { code: 'NOT_FOUND' })
  await assert.rejects(deleteAgent(pool, other, id, by), { code: 'NOT_FOUND' })
  await assert.rejects(create({ name: 'junior', senior_id: id }, other), /senior_id names no agent/)
  assert.ok(!(await listAgents(pool, other, { limit: 10 })).items.some((agent) => agent.id === id))
})

test('the agents whose tokens run short, or are used up, are listed by themselves, however old they are', async () => {
  const project = await insertProject(pool, 'tokens')
  const spend = async (name: string, mark: number) => {
    const { id } = await create({ name, token_allocation: 100 }, project)
    await pool.query('insert into agent_tokens (agent_id, used, mark) values ($1, $2::bigint, $2::smallint)', [
      id,
      mark,
    ])
  }
  for (const mark of [90, 95, 100, 0]) await spend(`at ${mark}`, mark)
  await create({ name: 'never at work' }, project)
  await create({ name: 'elsewhere', token_allocation: 100 })
  const names = async (tokens?: 'short' | 'used_up', limit = 10, cursor?: string) => {
    const { items, next_cursor: next } = await listAgents(pool, project, { tokens, limit, cursor })
    return { names: items.map(({ name }) => name), next }
  }
  assert.deepEqual((await names('short')).names, ['at 95', 'at 90'])
  assert.deepEqual((await names('used_up')).names, ['at 100'])
  assert.equal((await names()).names.length, 5)
  const first = await names('short', 1)
  assert.deepEqual(first.names, ['at 95'])
  assert.deepEqual((await names('short', 1, first.next ?? '')).names, ['at 90'])
})

const unsound: [AgentInput, RegExp][] = [
  [{ name: 'u', prompt: 'a', prompt_id: 'b' }, /exclude each other\.$/],
  [{ name: 'u', flow_type: 'sequential' }, /steps are missing: a sequential agent needs them\.$/],
  [{ name: 'u', steps: [{ prompt: 'x' }] }, /only a sequential agent/],
  [
    { name: 'u', trigger_type: 'reaction' },
    /reaction_config is missing: a reaction agent needs it, with objectTypes\.$/,
  ],
  [{ name: 'u', trigger_type: 'schedule' }, /cron_schedule is missing: a scheduled agent needs it\.$/],
  [{ name: 'u', senior_id: newId() }, /senior_id names no agent/],
]

for (const [input, sentence] of unsound) {
  test(`${JSON.stringify(input)} is refused and nothing is stored`, async () => {
    await assert.rejects(create(input), sentence)
    const { rowCount } = await pool.query(`select from agents where name = 'u'`)
    assert.equal(rowCount, 0)
  })
}

test('providers, tools and agents that a definition names must exist, at creation and at every change', async () => {
  const noTool: CheckNames = async (_db, _project, { tools }) =>
    tools.includes('nope') ? 'There is no tool nope.' : null
  const strict = { actor: systemActor, checkNames: noTool, onChanged: async () => {} }
  await assert.rejects(createAgent(pool, projectId, { name: 'names', tools: ['nope'] }, strict), /no tool nope/)
  const { id } = await createAgent(pool, projectId, { name: 'names' }, strict)
  await assert.rejects(updateAgent(pool, projectId, id, { tools: ['nope'] }, strict), /no tool nope/)
})

test('a cycle of seniors is refused, also when two changes race into one', async () => {
  const a = await create({ name: 'a' })
  const b = await create({ name: 'b', senior_id: a.id })
  const c = await create({ name: 'c', senior_id: b.id })
  await assert.rejects(updateAgent(pool, projectId, a.id, { senior_id: c.id }, by), /its own senior/)
  await assert.rejects(updateAgent(pool, projectId, a.id, { senior_id: a.id }, by), /its own senior/)
  const d = await create({ name: 'd' })
  const e = await create({ name: 'e' })
  const raced = await Promise.allSettled([
    updateAgent(pool, projectId, d.id, { senior_id: e.id }, by),
    updateAgent(pool, projectId, e.id, { senior_id: d.id }, by),
  ])
  assert.deepEqual(raced.map((one) => one.status).toSorted(), ['fulfilled', 'rejected'])
})

test('deleting a senior leaves its subordinates without one, and each change leaves an audit entry', async () => {
  const senior = await create({ name: 'leaving' })
  const junior = await create({ name: 'staying', senior_id: senior.id })
  await deleteAgent(pool, projectId, senior.id, by)
  assert.equal((await getAgent(pool, projectId, junior.id)).senior_id, null)
  const { rows } = await pool.query('select action from audit_log where target_id = $1 order by seq', [senior.id])
  assert.deepEqual(
    rows.map((row) => row.action),
    ['agent.create', 'agent.delete'],
  )
})
