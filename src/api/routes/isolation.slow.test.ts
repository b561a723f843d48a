// Another project's id is answered byte for byte like an unknown one, in every place of an id.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertAlert } from '../../../test/kit/alerts.ts'
import { createTestApp } from '../../../test/kit/app.ts'
import { smallEval } from '../../../test/kit/eval-roles.ts'
import { createGraph } from '../../../test/kit/graph.ts'
import { createHook } from '../../../test/kit/hooks.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { insertRuns } from '../../../test/kit/runs.ts'
import type { Hook } from '../../kernel/hook.ts'
import { newId } from '../../kernel/id.ts'
import { startSupervisor } from '../../supervisor/start.ts'

const kit = await createTestApp({ functions: { f: () => 1 } })
const mine = await kit.createProject('mine')
const theirs = await kit.createProject('theirs')
const myKey = (await kit.createKey(mine.id, 'admin')).key
const theirKeyId = (await kit.createKey(theirs.id, 'viewer')).id
const theirMember = await kit.call<{ id: string }>(`POST /api/projects/${theirs.id}/members`, {
  body: { email: 'someone@example.com', role: 'viewer' },
})
const me = await signInByLink(kit, { member: { projectId: mine.id, role: 'admin' } })
const theirHook = await createHook(kit, theirs.id, { name: 'their agent' })
const theirAgent = { id: theirHook.agentId }
const myAgent = await kit.createAgent(mine.id, { trigger_type: 'webhook' })
const [theirRun = ''] = await insertRuns(kit.pool, theirs.id, 1)
const [myRun = ''] = await insertRuns(kit.pool, mine.id, 1)
const started = { kind: 'run.started', data: {} }
for (const runId of [theirRun, myRun]) await kit.services.journal.append({ runId, fence: 1, events: [started] })
const theirTask = (
  await kit.call<{ id: string }>(`POST /api/projects/${theirs.id}/tasks`, { body: { title: 'theirs' } })
).body.id
await kit.pool.query(
  `insert into mcp_servers (id, project_id, name, url, set_by_instance_admin, tools)
   values ($1, $2, 'their-server', 'http://127.0.0.1:1/mcp', true, '[]')`,
  [newId(), theirs.id],
)

const theirGraph = await createGraph(kit, theirs.id)
const myGraph = await createGraph(kit, mine.id)

const flowRoot = { type: 'task', function: 'f' }
const createIn = async (projectId: string, what: string, body: object): Promise<string> =>
  (await kit.call<{ id: string }>(`POST /api/projects/${projectId}/${what}`, { body })).body.id
const theirFlow = await createIn(theirs.id, 'flows', { name: 'their flow', root: flowRoot })
const theirFlowRun = await createIn(theirs.id, 'flow-runs', { flow_id: theirFlow })
const theirAlert = await insertAlert(kit.pool, theirs.id, theirFlowRun)

const theirEval = await createIn(theirs.id, 'evals', smallEval)

const start = { task: 'x', metadata: {}, contextId: null, requested: 'blue', ofProcess: null }
const { id: theirSupervisorRun } = await startSupervisor(kit.pool, theirs.id, start)
/** A person names the project in a header below /v1. */
const inMine = { 'x-project-id': mine.id }
const part = { prompt_id: 'x', model: null }
const system = {
  supervisor: part,
  finalizer: part,
  escalation: part,
  traffic: 0,
  specialists: [{ name: 'a', ...part, tools: [] }],
}

const theirPrompt = 'prompts/their_prompt/variants/blue'
const messages = [{ role: 'system', content: 'their secret' }]
await kit.call(`PUT /api/projects/${theirs.id}/${theirPrompt}`, { body: { messages } })

/** Each route with one id left open. The test fills in another project's id, an unknown id, and a malformed id. */
const doors: { route: (id: string) => string; theirs: string; body?: unknown; headers?: Record<string, string> }[] = [
  { route: (id) => `GET /api/projects/${id}`, theirs: theirs.id },
  { route: (id) => `PATCH /api/projects/${id}`, theirs: theirs.id, body: { name: 'stolen' } },
  { route: (id) => `DELETE /api/projects/${id}`, theirs: theirs.id },
  { route: (id) => `POST /api/projects/${id}/halt`, theirs: theirs.id },
  { route: (id) => `POST /api/projects/${id}/unhalt`, theirs: theirs.id },
  { route: (id) => `GET /api/projects/${id}/settings`, theirs: theirs.id },
  { route: (id) => `PATCH /api/projects/${id}/settings`, theirs: theirs.id, body: { poll_interval: 100 } },
  { route: (id) => `GET /api/projects/${id}/audit`, theirs: theirs.id },
  { route: (id) => `GET /api/projects/${id}/keys`, theirs: theirs.id },
  { route: (id) => `POST /api/projects/${id}/keys`, theirs: theirs.id, body: { name: 'x', role: 'admin' } },
  { route: (id) => `GET /api/projects/${id}/members`, theirs: theirs.id },
  { route: (id) => `POST /api/projects/${id}/members`, theirs: theirs.id, body: { email: 'x@y.zz', role: 'admin' } },
  { route: (id) => `DELETE /api/projects/${id}/keys/${theirKeyId}`, theirs: theirs.id },
  { route: (id) => `DELETE /api/projects/${mine.id}/keys/${id}`, theirs: theirKeyId },
  {
    route: (id) => `PATCH /api/projects/${mine.id}/members/${id}`,
    theirs: theirMember.body.id,
    body: { role: 'admin' },
  },
  { route: (id) => `DELETE /api/projects/${mine.id}/members/${id}`, theirs: theirMember.body.id },
  ...[
    'agents',
    'runs',
    'tasks',
    'mcp-servers',
    'objects',
    'search?q=their',
    'usage',
    'schedule',
    'schedule/preview?cron_schedule=0+9+*+*+1-5',
    'flows',
    'flow-runs',
    'alerts',
    'events',
    'org',
    'org/health',
    'prompts',
    'evals',
    'systems',
    'systems/blue',
    ...['', '/versions', '/diff'].map((part) => `prompts/their_prompt/variants/blue${part}`),
  ].map((list) => ({
    route: (id: string) => `GET /api/projects/${id}/${list}`,
    theirs: theirs.id,
  })),
  { route: (id) => `POST /api/projects/${id}/agents`, theirs: theirs.id, body: { name: 'x' } },
  { route: (id) => `POST /api/projects/${id}/tasks`, theirs: theirs.id, body: { title: 'x' } },
  {
    route: (id) => `POST /api/projects/${id}/mcp-servers`,
    theirs: theirs.id,
    body: { name: 'x', url: 'http://a.zz/' },
  },
  { route: (id) => `GET /api/projects/${id}/agents/${theirAgent.id}`, theirs: theirs.id },
  { route: (id) => `GET /api/projects/${id}/runs/${theirRun}`, theirs: theirs.id },
  { route: (id) => `GET /api/projects/${id}/runs/${theirRun}/events`, theirs: theirs.id },
  { route: (id) => `GET /api/projects/${mine.id}/agents/${id}`, theirs: theirAgent.id },
  { route: (id) => `PATCH /api/projects/${mine.id}/agents/${id}`, theirs: theirAgent.id, body: { name: 'stolen' } },
  { route: (id) => `DELETE /api/projects/${mine.id}/agents/${id}`, theirs: theirAgent.id },
  { route: (id) => `POST /api/projects/${mine.id}/agents/${id}/trigger`, theirs: theirAgent.id, body: { input: 'x' } },
  ...['start', 'stop', 'restart', 'budget'].map((verb) => ({
    route: (id: string) => `POST /api/projects/${mine.id}/agents/${id}/${verb}`,
    theirs: theirAgent.id,
    ...(verb === 'budget' ? { body: { add: 1 } } : {}),
  })),
  ...['start', 'stop', 'restart'].map((verb) => ({
    route: (id: string) => `POST /api/projects/${id}/org/${verb}`,
    theirs: theirs.id,
  })),
  { route: (id) => `GET /api/projects/${mine.id}/agents/${id}/messages`, theirs: theirAgent.id },
  { route: (id) => `GET /api/projects/${id}/agents/${theirAgent.id}/hooks`, theirs: theirs.id },
  { route: (id) => `GET /api/projects/${mine.id}/agents/${id}/hooks`, theirs: theirAgent.id },
  { route: (id) => `POST /api/projects/${mine.id}/agents/${id}/hooks`, theirs: theirAgent.id, body: { name: 'x' } },
  { route: (id) => `DELETE /api/projects/${mine.id}/agents/${id}/hooks/${theirHook.id}`, theirs: theirAgent.id },
  { route: (id) => `DELETE /api/projects/${mine.id}/agents/${myAgent.id}/hooks/${id}`, theirs: theirHook.id },
  { route: (id) => `POST /api/projects/${mine.id}/agents/${id}/hooks/${theirHook.id}/rotate`, theirs: theirAgent.id },
  { route: (id) => `POST /api/projects/${mine.id}/agents/${myAgent.id}/hooks/${id}/rotate`, theirs: theirHook.id },
  { route: (id) => `GET /api/projects/${mine.id}/runs/${id}`, theirs: theirRun },
  { route: (id) => `GET /api/projects/${mine.id}/runs/${id}/steps`, theirs: theirRun },
  { route: (id) => `GET /api/projects/${mine.id}/runs/${id}/waits`, theirs: theirRun },
  { route: (id) => `GET /api/projects/${mine.id}/runs/${id}/effects`, theirs: theirRun },
  { route: (id) => `GET /api/projects/${mine.id}/runs/${id}/events`, theirs: theirRun },
  { route: (id) => `POST /api/projects/${mine.id}/runs/${id}/cancel`, theirs: theirRun },
  { route: (id) => `POST /api/projects/${mine.id}/runs/${id}/try-now`, theirs: theirRun },
  { route: (id) => `POST /api/projects/${mine.id}/runs/${id}/resume`, theirs: theirRun, body: {} },
  { route: (id) => `POST /api/projects/${mine.id}/runs/${id}/fork`, theirs: theirRun, body: { after_step: 0 } },
  { route: (id) => `GET /api/projects/${mine.id}/tasks/${id}`, theirs: theirTask },
  { route: (id) => `PATCH /api/projects/${mine.id}/tasks/${id}`, theirs: theirTask, body: { status: 'completed' } },
  { route: (id) => `POST /api/projects/${mine.id}/tasks/${id}/approve`, theirs: theirGraph.suggestionId },
  { route: (id) => `POST /api/projects/${mine.id}/tasks/${id}/reject`, theirs: theirGraph.suggestionId },
  { route: (id) => `POST /api/projects/${id}/objects`, theirs: theirs.id, body: { type: 'x', properties: {} } },
  {
    route: (id) => `PUT /api/projects/${id}/objects/by-key`,
    theirs: theirs.id,
    body: { type: 'x', key: 'k', properties: {} },
  },
  { route: (id) => `GET /api/projects/${id}/objects/${theirGraph.objectId}`, theirs: theirs.id },
  ...['', '/history', '/relationships'].map((part) => ({
    route: (id: string) => `GET /api/projects/${mine.id}/objects/${id}${part}`,
    theirs: theirGraph.objectId,
  })),
  {
    route: (id) => `PATCH /api/projects/${mine.id}/objects/${id}`,
    theirs: theirGraph.objectId,
    body: { properties: { stolen: true } },
  },
  { route: (id) => `DELETE /api/projects/${mine.id}/objects/${id}`, theirs: theirGraph.objectId },
  { route: (id) => `DELETE /api/projects/${mine.id}/relationships/${id}`, theirs: theirGraph.relationshipId },
  { route: (id) => `GET /api/projects/${mine.id}/agents/${id}/processing-log`, theirs: theirGraph.reactorId },
  {
    route: (id) => `POST /api/projects/${mine.id}/agents/${id}/processing-log/${theirGraph.entryId}/retry`,
    theirs: theirGraph.reactorId,
  },
  {
    route: (id) => `POST /api/projects/${mine.id}/agents/${myGraph.reactorId}/processing-log/${id}/retry`,
    theirs: theirGraph.entryId,
  },
  { route: (id) => `PUT /api/projects/${id}/${theirPrompt}`, theirs: theirs.id, body: { messages } },
  { route: (id) => `DELETE /api/projects/${id}/${theirPrompt}`, theirs: theirs.id },
  { route: (id) => `POST /api/projects/${id}/${theirPrompt}/rollback`, theirs: theirs.id, body: { version: 1 } },
  { route: (id) => `POST /api/projects/${id}/flows`, theirs: theirs.id, body: { name: 'x', root: flowRoot } },
  { route: (id) => `POST /api/projects/${id}/flows/validate`, theirs: theirs.id, body: { root: flowRoot } },
  { route: (id) => `POST /api/projects/${id}/flow-runs`, theirs: theirs.id, body: { root: flowRoot } },
  { route: (id) => `GET /api/projects/${mine.id}/flows/${id}`, theirs: theirFlow },
  { route: (id) => `PATCH /api/projects/${mine.id}/flows/${id}`, theirs: theirFlow, body: { name: 'stolen' } },
  { route: (id) => `DELETE /api/projects/${mine.id}/flows/${id}`, theirs: theirFlow },
  ...['', '/tasks', '/trace', '/metrics', '/topology', '/output', '/events'].map((part) => ({
    route: (id: string) => `GET /api/projects/${mine.id}/flow-runs/${id}${part}`,
    theirs: theirFlowRun,
  })),
  { route: (id) => `POST /api/projects/${mine.id}/flow-runs/${id}/cancel`, theirs: theirFlowRun },
  { route: (id) => `POST /api/projects/${mine.id}/flow-runs/${id}/resume`, theirs: theirFlowRun },
  { route: (id) => `POST /api/projects/${mine.id}/flow-runs/${id}/workers`, theirs: theirFlowRun, body: { add: 1 } },
  { route: (id) => `PATCH /api/projects/${mine.id}/flow-runs/${id}`, theirs: theirFlowRun, body: { timeout: 1 } },
  {
    route: (id) => `POST /api/projects/${mine.id}/flow-runs/${id}/topology`,
    theirs: theirFlowRun,
    body: { topology: 'mesh' },
  },
  { route: (id) => `POST /api/projects/${mine.id}/alerts/${id}/ack`, theirs: theirAlert },
  { route: (id) => `POST /api/projects/${id}/evals`, theirs: theirs.id, body: smallEval },
  { route: (id) => `GET /api/projects/${mine.id}/evals/${id}`, theirs: theirEval },
  { route: (id) => `POST /api/projects/${mine.id}/evals/${id}/cancel`, theirs: theirEval },
  { route: (id) => `PUT /api/projects/${id}/systems/blue`, theirs: theirs.id, body: system },
  ...['', '/events'].map((suffix) => ({
    route: (id: string) => `GET /v1/agent/runs/${id}${suffix}`,
    theirs: theirSupervisorRun,
    headers: inMine,
  })),
  { route: (name) => `GET /api/projects/${mine.id}/mcp-servers/${name}`, theirs: 'their-server' },
  { route: (name) => `DELETE /api/projects/${mine.id}/mcp-servers/${name}`, theirs: 'their-server' },
]

/** Requests with the id in a body or a query: another project's id is answered like an unknown one. */
const inner: {
  name: string
  request: (id: string) => [route: string, body?: unknown]
  theirs: string
  status: number
}[] = [
  {
    name: 'the run to resume',
    request: (id) => [`POST /api/projects/${mine.id}/agents/${myAgent.id}/trigger`, { input: 'x', resume_run_id: id }],
    theirs: theirRun,
    status: 404,
  },
  {
    name: 'the agent of a fork',
    request: (id) => [`POST /api/projects/${mine.id}/runs/${myRun}/fork`, { after_step: 0, agent_id: id }],
    theirs: theirAgent.id,
    status: 404,
  },
  {
    name: 'a senior',
    request: (id) => [`PATCH /api/projects/${mine.id}/agents/${myAgent.id}`, { senior_id: id }],
    theirs: theirAgent.id,
    status: 400,
  },
  {
    name: 'an assignee',
    request: (id) => [`POST /api/projects/${mine.id}/tasks`, { title: 'x', assigned_to: id }],
    theirs: theirAgent.id,
    status: 400,
  },
  {
    name: 'a parent task',
    request: (id) => [`POST /api/projects/${mine.id}/tasks`, { title: 'x', parent_task_id: id }],
    theirs: theirTask,
    status: 400,
  },
  ...(['from_id', 'to_id'] as const).map((end) => ({
    name: `the ${end} of a relationship`,
    request: (id: string): [string, unknown] => [
      `POST /api/projects/${mine.id}/relationships`,
      { type: 'x', from_id: myGraph.objectId, to_id: myGraph.objectId, [end]: id },
    ],
    theirs: theirGraph.objectId,
    status: 404,
  })),
  {
    name: 'the flow to start',
    request: (id) => [`POST /api/projects/${mine.id}/flow-runs`, { flow_id: id }],
    theirs: theirFlow,
    status: 404,
  },
  {
    name: 'flow runs by flow',
    request: (id) => [`GET /api/projects/${mine.id}/flow-runs?flow_id=${id}`],
    theirs: theirFlow,
    status: 200,
  },
  {
    name: 'alerts by flow run',
    request: (id) => [`GET /api/projects/${mine.id}/alerts?flow_run_id=${id}`],
    theirs: theirFlowRun,
    status: 200,
  },
  {
    name: 'the task of a layout',
    request: (id) => ['POST /v1/genui/layout', { context: { scenario: 'approval', task_id: id } }],
    theirs: theirGraph.suggestionId,
    status: 404,
  },
  {
    name: 'the run of a layout',
    request: (id) => ['POST /v1/genui/layout', { context: { scenario: 'run_summary', run_id: id } }],
    theirs: theirRun,
    status: 404,
  },
  {
    name: 'the run of the supervisor to continue',
    request: (id) => ['POST /v1/agent/run', { input: { task: 'x' }, options: { run_id: id } }],
    theirs: theirSupervisorRun,
    status: 404,
  },
  {
    name: 'the eval of a layout',
    request: (id) => ['POST /v1/genui/layout', { context: { scenario: 'eval_comparison', eval_id: id } }],
    theirs: theirEval,
    status: 404,
  },
  {
    name: 'runs by agent',
    request: (id) => [`GET /api/projects/${mine.id}/runs?agent_id=${id}`],
    theirs: theirAgent.id,
    status: 200,
  },
  {
    name: 'runs by parent',
    request: (id) => [`GET /api/projects/${mine.id}/runs?parent_run_id=${id}`],
    theirs: theirRun,
    status: 200,
  },
  {
    name: 'the run that a case is taken from',
    request: (id) => [`POST /api/projects/${mine.id}/evals`, { ...smallEval, cases: [{ run_id: id }] }],
    theirs: theirRun,
    status: 400,
  },
  {
    name: 'tasks by assignee',
    request: (id) => [`GET /api/projects/${mine.id}/tasks?assigned_to=${id}`],
    theirs: theirAgent.id,
    status: 200,
  },
]

for (const { name, request, theirs: theirId, status } of inner) {
  test(`${name}: an id of another project is answered like an unknown one`, async () => {
    const ask = (id: string) => {
      const [route, body] = request(id)
      return kit.call(route, { token: myKey, ...(body === undefined ? {} : { body }) })
    }
    const [known, unknown, malformed] = [await ask(theirId), await ask(newId()), await ask('no-id')]
    assert.equal(known.status, status)
    assert.equal(unknown.text, known.text)
    assert.deepEqual(comparable(unknown.headers), comparable(known.headers))
    assert.equal(malformed.status, 400)
  })
}

test('another project in x-project-id is answered like an unknown one', async () => {
  const body = { prompt_id: 'their_prompt', variant_id: 'blue' }
  for (const credentials of [{ token: myKey }, { cookie: me.cookie }]) {
    const ask = (id: string) =>
      kit.call('POST /v1/prompts/get', { ...credentials, body, headers: { 'x-project-id': id } })
    const [known, unknown, malformed] = [await ask(theirs.id), await ask(newId()), await ask('no-id')]
    assert.equal(known.status, 404)
    assert.equal(unknown.text, known.text)
    assert.deepEqual(comparable(unknown.headers), comparable(known.headers))
    assert.equal(malformed.status, 400)
  }
})

test('a prompt of another project is missing, exactly like an unknown prompt', async () => {
  const ask = async (name: string) => {
    const path = `GET /api/projects/${mine.id}/prompts/${name}/variants/blue`
    const body = { prompt_id: name, variant_id: 'blue' }
    const answers = [
      await kit.call(path, { token: myKey }),
      await kit.call('POST /v1/prompts/get', { token: myKey, body }),
    ]
    return answers.map(({ status, text }) => [status, text.replaceAll(name, '')])
  }
  const theirAnswers = await ask('their_prompt')
  assert.deepEqual(theirAnswers, await ask('unknown_prompt'))
  assert.deepEqual(
    theirAnswers.map(([status]) => status),
    [404, 404],
  )
})

test('an answer under way in a chat of another project cannot be read, exactly like an unknown chat', async () => {
  const { id: projectId } = await kit.createProject('of others')
  const { id: runId } = await startSupervisor(kit.pool, projectId, { ...start, contextId: 'their-chat' })
  const chat = [projectId, 'their-chat', runId]
  await kit.pool.query('insert into chats (project_id, chat_id, run_id) values ($1, $2, $3)', chat)
  const ask = (id: string) => kit.call(`GET /v1/agent/chat/${id}/stream`, { token: myKey })
  const [known, unknown] = [await ask('their-chat'), await ask('nobodys-chat')]
  assert.deepEqual([known.status, unknown.status], [204, 204])
  assert.deepEqual(comparable(unknown.headers), comparable(known.headers))
})

test('a suggestion of another project cannot be approved among others', async () => {
  const ask = async (id: string) =>
    (await kit.call(`POST /api/projects/${mine.id}/tasks/approve`, { token: myKey, body: { ids: [id] } })).text
  const unknown = newId()
  const known = await ask(theirGraph.suggestionId)
  assert.equal((await ask(unknown)).replaceAll(unknown, ''), known.replaceAll(theirGraph.suggestionId, ''))
  assert.match(known, /NOT_FOUND/)
})

test('an agent of another project cannot be named by an agent', async () => {
  const body = { input: 'x', resume_run_id: myRun }
  const answer = await kit.call(`POST /api/projects/${mine.id}/agents/${theirAgent.id}/trigger`, { token: myKey, body })
  assert.notEqual(answer.status, 200)
  assert.notEqual(answer.status, 202)
})

test('an agent of another project cannot be named by a flow, neither by name nor by id', async () => {
  for (const agent of [theirAgent.id, 'their agent', newId()]) {
    const body = { root: { type: 'task', agent } }
    const answer = await kit.call(`POST /api/projects/${mine.id}/flow-runs`, { token: myKey, body })
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`there is no agent called ${agent}`))
  }
})

for (const door of doors) {
  for (const [who, credentials] of Object.entries({ key: { token: myKey }, person: { cookie: me.cookie } })) {
    test(`${door.route(':id')} tells a ${who} of another project nothing`, async () => {
      const { body, headers } = door
      const options = { ...credentials, ...(body === undefined ? {} : { body }), ...(headers ? { headers } : {}) }
      const [theirAnswer, ...others] = await Promise.all(
        [door.theirs, newId(), 'no-id', '%00', `${door.theirs}x`].map((id) => kit.call(door.route(id), options)),
      )
      assert.equal(theirAnswer?.status, 404)
      for (const other of others.slice(0, 2)) {
        assert.equal(other.text, theirAnswer?.text)
        assert.deepEqual(comparable(other.headers), comparable(theirAnswer?.headers ?? {}))
      }
      for (const other of others) assert.equal(other.status, 404)
    })
  }
}

test('these requests changed no row of the other project', async () => {
  const project = await kit.call(`GET /api/projects/${theirs.id}`)
  assert.equal(project.body.name, 'theirs')
  assert.equal(project.body.halted_at, null)
  const members = await kit.call<{ items: unknown[] }>(`GET /api/projects/${theirs.id}/members`)
  assert.equal(members.body.items.length, 1)
  const counts = { agents: 2, runs: 2, tasks: 2, objects: 2, 'mcp-servers': 1, flows: 1, 'flow-runs': 1, evals: 1 }
  for (const [list, count] of Object.entries(counts)) {
    const { items } = (await kit.call<{ items: unknown[] }>(`GET /api/projects/${theirs.id}/${list}`)).body
    assert.equal(items.length, count, list)
  }
  const hooks = await kit.call<{ items: Hook[] }>(`GET /api/projects/${theirs.id}/agents/${theirAgent.id}/hooks`)
  assert.deepEqual(
    hooks.body.items.map(({ id, old_secret_until }) => [id, old_secret_until]),
    [[theirHook.id, null]],
  )
  assert.equal((await kit.call(`GET /api/projects/${theirs.id}/runs/${theirRun}`)).body.status, 'running')
  const ofSupervisor = await kit.call(`GET /api/projects/${theirs.id}/runs/${theirSupervisorRun}`)
  assert.equal(ofSupervisor.body.status, 'queued')
  const { items: systems } = (
    await kit.call<{ items: { updated_at: null }[] }>(`GET /api/projects/${theirs.id}/systems`)
  ).body
  assert.deepEqual(
    systems.map(({ updated_at: at }) => at),
    [null, null],
  )
  assert.equal((await kit.call(`GET /api/projects/${theirs.id}/tasks/${theirTask}`)).body.status, 'pending')
  const flowRun = (await kit.call(`GET /api/projects/${theirs.id}/flow-runs/${theirFlowRun}`)).body
  assert.deepEqual([flowRun.status, flowRun.workers], ['queued', 50])
  const audit = await kit.call<{ items: { action: string }[] }>(`GET /api/projects/${theirs.id}/audit`)
  assert.deepEqual(
    audit.body.items.map((entry) => entry.action),
    [
      ...['prompt.save', 'eval.create', 'flow.start', 'flow.create'],
      ...['relationship.create', 'object.create', 'object.create', 'agent.create', 'task.create'],
      ...['hook.create', 'agent.create', 'member.invite', 'key.create', 'project.create'],
    ],
  )
})

test('lists hold only rows that the credentials can see', async () => {
  for (const credentials of [{ token: myKey }, { cookie: me.cookie }]) {
    const answer = await kit.call<{ items: { id: string }[] }>('GET /api/projects', credentials)
    assert.deepEqual(
      answer.body.items.map((project) => project.id),
      [mine.id],
    )
  }
})

function comparable(headers: Record<string, unknown>): Record<string, unknown> {
  const { 'x-request-id': _id, date: _date, ...rest } = headers
  return rest
}
