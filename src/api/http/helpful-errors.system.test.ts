// Errors that help: an unknown name comes with the nearest one, a missing field is called missing, and JSON that is
// none has a place.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ADMIN_TOKEN, createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { type LogFields, silentLog } from '../../kernel/log.ts'

const lines: [fields: LogFields, message: string][] = []
const kit = await createTestApp({
  log: { ...silentLog, warn: (fields, message) => void lines.push([fields, message]) },
  tools: [testTool('send_letter', async () => null)],
  models: new Map([['script', createScriptedModel(() => ({ text: 'Done.' }))]]),
  functions: { summarise: () => 1, split: () => 'no list', wait: () => new Promise(() => {}) },
})
const { id: projectId } = await kit.createProject()
const { id: otherId } = await kit.createProject('Another')
const project = `/api/projects/${projectId}`
const agent = await kit.createAgent(projectId, { name: 'researcher' })
await kit.createAgent(otherId, { name: 'translator' })
await kit.call('POST /api/providers', { body: { name: 'offline', kind: 'offline' } })
const entry = { name: 'read_file', description: 'Reads.', input_schema: {}, effect: 'readonly', hash: 'h' }
await kit.pool.query(
  `insert into mcp_servers (id, project_id, name, url, set_by_instance_admin, tools)
   values (gen_random_uuid(), $1, 'files', 'http://127.0.0.1:1', true, $2)`,
  [projectId, JSON.stringify([entry])],
)

interface Refusal {
  error: { code: string; message: string; details: { issues?: { path: string; message: string }[] } | null }
}

async function refusal(route: string, body?: unknown): Promise<Refusal['error']> {
  const { status, body: answer } = await kit.call<Refusal>(route, body === undefined ? {} : { body })
  assert.equal(status, 400, JSON.stringify(answer))
  return answer.error
}

const agents = `POST ${project}/agents`
const flows = `POST ${project}/flows`
const leaf = { type: 'task', function: 'summarise' }
const cases: { name: string; request: string; body?: unknown; says: string }[] = [
  {
    name: 'a tool',
    request: agents,
    body: { name: 'a', tools: ['object_serch'] },
    says: 'tools: There is no tool called "object_serch". Did you mean "object_search"?',
  },
  {
    name: 'a tool of the app module',
    request: agents,
    body: { name: 'a', tools: ['sendletter'] },
    says: 'tools: There is no tool called "sendletter". Did you mean "send_letter"?',
  },
  {
    name: 'a tool of a server',
    request: agents,
    body: { name: 'a', tools: ['mcp:files/raed_file'] },
    says: 'tools: The MCP server "files" has no tool called "raed_file". Did you mean "read_file"?',
  },
  {
    name: 'a server',
    request: agents,
    body: { name: 'a', tools: ['mcp:file/*'] },
    says: 'tools: There is no MCP server called "file" in this project. Did you mean "files"?',
  },
  {
    name: 'a provider',
    request: agents,
    body: { name: 'a', model: { provider: 'ofline', name: 'm' } },
    says: 'model.provider: there is no provider called ofline. Did you mean "offline"?',
  },
  {
    name: 'a provider that resembles none',
    request: agents,
    body: { name: 'a', model: { provider: 'opnai', name: 'm' } },
    says: 'model.provider: there is no provider called opnai. You may use offline.',
  },
  {
    name: 'a provider of the settings',
    request: `PATCH ${project}/settings`,
    body: { default_model: { provider: 'offlin', name: 'm' } },
    says: 'default_model.provider: there is no provider called offlin. Did you mean "offline"?',
  },
  {
    name: 'a name in the place of an id',
    request: `POST ${project}/flow-runs`,
    body: { flow_id: 'watering' },
    says: 'body.flow_id must be an id, such as 0199a6f0-5f3e-7c1a-9d52-8f6b1e2c3d4e. GET /flows lists the ids.',
  },
  {
    name: 'a number in the place of an id',
    request: agents,
    body: { name: 'a', senior_id: 7 },
    says: 'body.senior_id must be an id, such as 0199a6f0-5f3e-7c1a-9d52-8f6b1e2c3d4e. GET /agents lists the ids.',
  },
  {
    name: 'a name among ids',
    request: `POST ${project}/tasks/approve`,
    body: { ids: ['the first one'] },
    says: 'body.ids.0 must be an id, such as 0199a6f0-5f3e-7c1a-9d52-8f6b1e2c3d4e. GET /tasks lists the ids.',
  },
  {
    name: 'a name in a query',
    request: `GET ${project}/runs?agent_id=researcher`,
    says: 'query.agent_id must be an id, such as 0199a6f0-5f3e-7c1a-9d52-8f6b1e2c3d4e. GET /agents lists the ids.',
  },
  {
    name: 'a time zone',
    request: agents,
    body: { name: 'a', timezone: 'Europe/Belrin' },
    says: 'timezone: there is no time zone called Europe/Belrin. Did you mean "Europe/Berlin"?',
  },
  {
    name: 'a field of a body',
    request: agents,
    body: { name: 'a', promt: 'x' },
    says: 'body has no field "promt". Did you mean "prompt"?',
  },
  {
    name: 'a field within a field',
    request: agents,
    body: { name: 'a', model: { provider: 'offline', name: 'm', temprature: 1 } },
    says: 'body.model has no field "temprature". Did you mean "temperature"?',
  },
  {
    name: 'several fields, each of which is meant once',
    request: agents,
    body: { name: 'a', prompt: 'x', promt: 'y', roles: 'z' },
    says: 'body has no field "promt". It has no field "roles". Did you mean "role"?',
  },
  {
    name: 'a field that is missing beside one that is unknown',
    request: `POST ${project}/agents/${agent.id}/trigger`,
    body: { inputs: 'x' },
    says: 'body.input is missing. body has no field "inputs". Did you mean "input"?',
  },
  { name: 'a missing field', request: agents, body: { role: 'x' }, says: 'body.name is missing.' },
  { name: 'a missing body', request: agents, says: 'body is missing.' },
  { name: 'a missing root', request: flows, body: { name: 'x' }, says: 'body.root is missing.' },
  {
    name: 'a value of the wrong type',
    request: `POST ${project}/agents/${agent.id}/trigger`,
    body: { input: 7 },
    says: 'body.input must be a text or an object.',
  },
  {
    name: 'a value of an enum',
    request: agents,
    body: { name: 'a', flow_type: 'sequentail' },
    says: 'must be one of',
  },
  {
    name: 'a query parameter',
    request: `GET ${project}/runs?statsu=failed`,
    says: 'query has no field "statsu". Did you mean "status"?',
  },
  {
    name: 'a value of a query parameter',
    request: `GET ${project}/runs?status=complete`,
    says: 'Did you mean "completed"?',
  },
  {
    name: 'a template',
    request: `POST ${project}/flow-runs`,
    body: { template: 'reserch' },
    says: 'There is no template called reserch. Did you mean "research"?',
  },
  {
    name: 'an agent of a flow',
    request: flows,
    body: { name: 'f', root: { type: 'task', agent: 'reseacher', input: 'x' } },
    says: 'root.agent: there is no agent called reseacher. Did you mean "researcher"?',
  },
  {
    name: 'a queen and a worker',
    request: flows,
    body: { name: 'f', root: { type: 'hierarchical', queen: 'Researchr', workers: ['researcher'], goal: 'g' } },
    says: 'root.queen: there is no agent called Researchr. Did you mean "researcher"?',
  },
  {
    name: 'a worker of a queen',
    request: flows,
    body: { name: 'f', root: { type: 'hierarchical', queen: 'researcher', workers: ['resercher'], goal: 'g' } },
    says: 'root.workers[0]: there is no agent called resercher. Did you mean "researcher"?',
  },
  {
    name: 'a function of a flow',
    request: flows,
    body: { name: 'f', root: { type: 'task', function: 'sumarise' } },
    says: 'root.function: there is no function called sumarise. Did you mean "summarise"?',
  },
  {
    name: 'a built-in function',
    request: flows,
    body: { name: 'f', root: { type: 'task', function: 'muster.aks' } },
    says: 'root.function: there is no function called muster.aks. Did you mean "muster.ask"?',
  },
  {
    name: 'a type of node',
    request: flows,
    body: { name: 'f', root: { type: 'sequental', steps: [leaf] } },
    says: 'Did you mean "sequential"?',
  },
  {
    name: 'a field of a node',
    request: flows,
    body: { name: 'f', root: { type: 'sequential', step: [leaf] } },
    says: 'root.steps is missing. root has no field "step". Did you mean "steps"?',
  },
  {
    name: 'a worker of an edge',
    request: flows,
    body: {
      name: 'f',
      root: {
        type: 'adaptive',
        topology: 'custom',
        workers: ['left', 'right'],
        edges: [['left', 'rigth']],
        tasks: [leaf],
      },
    },
    says: 'root.edges[0]: there is no worker called rigth. Did you mean "right"?',
  },
  {
    name: 'a system variant',
    request: `POST ${project}/evals`,
    body: { name: 'e', cases: [{ task: 't' }], variants: ['blue', 'gren'] },
    says: 'There is no system variant called "gren" in this project. Did you mean "green"?',
  },
  {
    name: 'a field of one form of a case',
    request: `POST ${project}/evals`,
    body: { name: 'e', cases: [{ tasks: 't' }], variants: ['blue'] },
    says: 'body.cases.0.task is missing. body.cases.0 has no field "tasks". Did you mean "task"?',
  },
]

for (const { name, request, body, says } of cases) {
  test(`B9: ${name} is refused with words that help`, async () => {
    const { code, message } = await refusal(request, body)
    assert.equal(code, 'INVALID_REQUEST')
    assert.ok(message.includes(says), message)
  })
}

test('B9: an address that another method has is no id, whatever is asked of it', async () => {
  const shadowed: [request: string, allowed: string][] = [
    [`GET ${project}/objects/by-key?type=note&key=a`, 'PUT'],
    [`DELETE ${project}/objects/by-key`, 'PUT'],
    [`POST ${project}/objects/by-key`, 'PUT'],
    [`GET ${project}/flows/validate`, 'POST'],
    [`PUT ${project}/flows/validate`, 'POST'],
    [`PATCH ${project}/flows/recommend`, 'POST'],
    [`GET ${project}/tasks/approve`, 'POST'],
  ]
  for (const [request, allowed] of shadowed) {
    const { status, headers, body } = await kit.call<Refusal>(request)
    assert.deepEqual([status, headers.allow, body.error.code], [405, allowed, 'METHOD_NOT_ALLOWED'], request)
    assert.ok(body.error.message.startsWith(`This address answers ${allowed}, not`), body.error.message)
  }
  assert.equal((await kit.call(`GET ${project}/objects/by-key`, { token: null })).status, 401)
  assert.equal((await kit.call(`GET ${project}/objects/by-kez`)).status, 404)
})

test('B9: nothing is guessed that is not near, nor anything of another project', async () => {
  const far = await refusal(agents, { name: 'a', tools: ['teleport'] })
  assert.equal(far.message, 'tools: There is no tool called "teleport".')
  const theirs = await refusal(flows, { name: 'f', root: { type: 'task', agent: 'translater', input: 'x' } })
  assert.equal(theirs.message, 'root.agent: there is no agent called translater.')
  const server = await kit.call<Refusal>(`POST /api/projects/${otherId}/agents`, {
    body: { name: 'a', tools: ['mcp:file/*'] },
  })
  assert.equal(server.body.error.message, 'tools: There is no MCP server called "file" in this project.')
})

test('B9: all problems are listed with their paths, and a message stays short whatever is sent', async () => {
  const { details } = await refusal(agents, { model: { provider: 'offline' }, colour: 1 })
  assert.deepEqual(details?.issues, [
    { path: 'name', message: 'is missing' },
    { path: 'model.name', message: 'is missing' },
    { path: '', message: 'has no field "colour".' },
  ])
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`${'x'.repeat(150)}${index}`, 1]))
  const { message } = await refusal(agents, { name: 'a', ...many })
  assert.ok(message.length < 1_000 && message.includes('4995 more of the given fields'), message)
})

test('B9: an agent of a large project is guessed from its neighbours', async () => {
  await kit.pool.query(
    `insert into agents (id, project_id, name, capabilities)
     select gen_random_uuid(), $1, 'bot ' || lpad(n::text, 5, '0'), capabilities
     from agents, generate_series(1, 3000) n where id = $2`,
    [projectId, agent.id],
  )
  const { message } = await refusal(flows, { name: 'f', root: { type: 'task', agent: 'bot 01234x', input: 'x' } })
  assert.match(message, /there is no agent called bot 01234x\. Did you mean "bot 01234"\?$/)
})

test('B9: a body that is no JSON is refused with line and column, and its text is not repeated', async () => {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' }
  const sent = async (payload: string): Promise<string> => {
    const answer = await kit.app.inject({ method: 'POST', url: `${project}/agents`, headers, payload })
    assert.equal(answer.statusCode, 400, answer.body)
    return answer.json<Refusal>().error.message
  }
  assert.equal(
    await sent('{\n  "name": "a",\n  "role": sk-secret\n}'),
    'The body is not valid JSON. Line 3, column 11: a value was expected, and "s" was found.',
  )
  assert.match(
    await sent('{"name": "a",}'),
    /Line 1, column 14: a property name in double quotes was expected, and "}"/,
  )
  assert.match(await sent(`${'['.repeat(70)}${']'.repeat(70)}`), /nested deeper than 64/)
})

test('B9: items that are no list say which node and what was given', async () => {
  const { play } = flowCalls(kit, projectId)
  const shared = { type: 'map_reduce', id: 'parts', workers: 2, map: 'summarise', reduce: 'summarise' }
  const { error } = await play({ ...shared, items: '{{input}}' })
  assert.equal(error, 'parts: items must be a list, and it is null.')
  const { error: given } = await play({ ...shared, items: 'split' })
  assert.match(String(given), /^parts: .*split.*(no list|a text)/)
})

test('B9: the log line of a flow run that failed or ran out of time says which flow it was, and quotes nobody', async () => {
  const { play } = flowCalls(kit, projectId)
  const mapped = { type: 'map_reduce', id: 'parts', workers: 2, map: 'summarise', reduce: 'summarise' }
  const failed = await play({ ...mapped, items: '{{input}}' }, { input: 'x'.repeat(10) })
  const root = { type: 'sequential', steps: [{ type: 'task', function: 'wait' }] }
  const { body: flow } = await kit.call<{ id: string }>(flows, { body: { name: 'slow', root } })
  const { body: late } = await kit.call<{ id: string; status: string }>(`POST ${project}/flow-runs`, {
    body: { flow_id: flow.id, timeout: 50 },
    headers: { prefer: 'wait=60' },
  })
  assert.equal(late.status, 'timed_out')
  const told = lines.filter(([fields]) => [failed.id, late.id].includes(String(fields.flow_run_id)))
  const shared = { project_id: projectId }
  assert.equal(failed.error, 'parts: items must be a list, and it is a text of 10 characters.')
  assert.deepEqual(told, [
    [{ flow_run_id: failed.id, ...shared, pattern: 'map_reduce' }, 'a flow run failed'],
    [{ flow_run_id: late.id, ...shared, flow_id: flow.id, pattern: 'sequential' }, 'a flow run timed out'],
  ])
})
