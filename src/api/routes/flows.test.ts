import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { until } from '../../../test/kit/until.ts'
import type { Flow } from '../../flows/definition/flows.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import type { ErrorAnswer } from '../http/errors.ts'

const kit = await createTestApp({ functions: { f: () => 1, g: () => 2 } })
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const f = { type: 'task', function: 'f' }
const root = { type: 'sequential', steps: [f, { type: 'task', function: 'g', id: 'last' }] }
let flowCount = 0
/** The problems of a refused flow, in the shape of the contract. */
const problemsOf = ({ error }: ErrorAnswer) => (error.details ?? assert.fail()).errors as { path: string }[]
const createFlow = async (body: object = {}) =>
  (await kit.call<Flow>(`POST ${base}/flows`, { body: { name: `flow ${++flowCount}`, root, ...body } })).body

test('a flow is kept as it was written, listed newest first, changed and deleted', async () => {
  const made = await kit.call<Flow>(`POST ${base}/flows`, { body: { name: 'mine', root } })
  assert.equal(made.status, 201)
  assert.deepEqual([made.body.name, made.body.root, made.body.project_id], ['mine', root, project.id])
  const second = await createFlow()
  const list = await kit.call<{ items: Flow[] }>(`GET ${base}/flows`)
  assert.deepEqual(
    list.body.items.slice(0, 2).map((flow) => flow.id),
    [second.id, made.body.id],
  )
  const path = `${base}/flows/${made.body.id}`
  const renamed = await kit.call<Flow>(`PATCH ${path}`, { body: { name: 'renamed' } })
  assert.deepEqual([renamed.body.name, renamed.body.root], ['renamed', root])
  const changed = await kit.call<Flow>(`PATCH ${path}`, { body: { root: f } })
  assert.deepEqual([changed.body.name, changed.body.root], ['renamed', f])
  assert.deepEqual((await kit.call<Flow>(`GET ${path}`)).body, changed.body)
  assert.equal((await kit.call(`DELETE ${path}`)).status, 204)
  assert.equal((await kit.call(`GET ${path}`)).status, 404)
  assert.equal((await kit.call(`DELETE ${path}`)).status, 404)
})

test('the audit notes the author of a change to a flow', async () => {
  const { id } = await createFlow()
  await kit.call(`PATCH ${base}/flows/${id}`, { body: { name: 'audited' } })
  await kit.call(`PATCH ${base}/flows/${id}`, { body: {} })
  await kit.call(`DELETE ${base}/flows/${id}`)
  const { rows } = await kit.pool.query<{ action: string; actor_type: string }>(
    'select action, actor_type from audit_log where target_id = $1 order by at, id',
    [id],
  )
  assert.deepEqual(
    rows.map((row) => [row.action, row.actor_type]),
    ['flow.create', 'flow.update', 'flow.delete'].map((action) => [action, 'instance_admin']),
  )
})

test('a flow that is deleted while it is started runs once more, without the flow', async () => {
  const { id } = await createFlow()
  const deleting = await kit.pool.connect()
  try {
    await deleting.query('begin')
    await deleting.query('delete from flows where id = $1', [id])
    const started = kit.call(`POST ${base}/flow-runs`, { body: { flow_id: id } })
    await until(async () => {
      const { rowCount } = await kit.pool.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%insert into flow_runs%'`,
      )
      return rowCount === 1
    }, 'the start waits for the deletion')
    await deleting.query('commit')
    const { status, body } = await started
    assert.deepEqual([status, body.flow_id], [202, null])
  } finally {
    deleting.release()
  }
})

test('a name belongs to one flow of a project', async () => {
  const first = await createFlow({ name: 'taken' })
  const again = await kit.call<ErrorAnswer>(`POST ${base}/flows`, { body: { name: 'taken', root } })
  assert.deepEqual([again.status, again.body.error.code], [409, 'CONFLICT'])
  const other = await createFlow()
  assert.equal((await kit.call(`PATCH ${base}/flows/${other.id}`, { body: { name: 'taken' } })).status, 409)
  assert.equal((await kit.call(`PATCH ${base}/flows/${first.id}`, { body: { name: 'taken' } })).status, 200)
  const elsewhere = await kit.createProject()
  const there = await kit.call(`POST /api/projects/${elsewhere.id}/flows`, { body: { name: 'taken', root } })
  assert.equal(there.status, 201)
})

test('of two flows created at once with one name, one is accepted', async () => {
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => kit.call(`POST ${base}/flows`, { body: { name: 'raced', root } })),
  )
  assert.deepEqual(answers.map((answer) => answer.status).toSorted(), [201, 409, 409, 409, 409])
})

test('the same Idempotency-Key makes one flow', async () => {
  const call = { body: { name: 'once', root }, headers: { 'idempotency-key': 'a flow' } }
  const [first, second] = [await kit.call(`POST ${base}/flows`, call), await kit.call(`POST ${base}/flows`, call)]
  assert.deepEqual([second.status, second.body], [201, first.body])
  assert.equal(second.headers['idempotency-replayed'], 'true')
})

test('validate lists all problems, node by node, and stores nothing', async () => {
  const viewer = (await kit.createKey(project.id, 'viewer')).key
  const validate = (tree: unknown) => kit.call(`POST ${base}/flows/validate`, { token: viewer, body: { root: tree } })
  assert.deepEqual((await validate(root)).body, { valid: true, errors: [] })
  const broken = {
    type: 'sequential',
    steps: [f, { type: 'task', function: 'nowhere' }, { type: 'task', agent: 'no' }],
  }
  assert.deepEqual((await validate(broken)).body, {
    valid: false,
    errors: [
      { path: 'root.steps[1].function', message: 'there is no function called nowhere' },
      { path: 'root.steps[2].agent', message: 'there is no agent called no' },
    ],
  })
  const failing = { type: 'task', function: 'muster.ask', args: { prompt: '' } }
  assert.deepEqual((await validate({ type: 'sequential', steps: [failing] })).body, {
    valid: true,
    errors: [],
    warnings: [{ path: 'root.steps[0].args.prompt', message: 'must not be empty' }],
  })
  for (const tree of [null, 7, 'x', [], {}]) {
    const answer = await validate(tree)
    assert.deepEqual([answer.status, answer.body.valid], [200, false], JSON.stringify(tree))
  }
})

test('agents are known by name and by id, in either case, while they exist, and only in their project', async () => {
  const agent = await kit.createAgent(project.id, { name: 'Writer' })
  const elsewhere = await kit.createProject()
  const verdict = async (name: string, projectId = project.id): Promise<unknown> => {
    const body = { root: { type: 'task', agent: name } }
    return (await kit.call(`POST /api/projects/${projectId}/flows/validate`, { body })).body.valid
  }
  for (const name of ['Writer', agent.id, agent.id.toUpperCase()]) assert.equal(await verdict(name), true, name)
  assert.equal(await verdict('writer'), false)
  assert.equal(await verdict('Writer', elsewhere.id), false)
  assert.equal(await verdict(agent.id, elsewhere.id), false)
  await kit.call(`DELETE ${base}/agents/${agent.id}`)
  assert.equal(await verdict('Writer'), false)
})

test('every field that names agents is checked', async () => {
  for (const name of ['queen', 'one', 'two']) await kit.createAgent(project.id, { name })
  const agent = { type: 'task', agent: 'one' }
  const trees = [
    { type: 'hierarchical', queen: 'queen', workers: ['one', 'two'], goal: 'x' },
    { type: 'parallel', branches: [agent], aggregate: { type: 'task', agent: 'two' } },
    { type: 'loop', body: agent, max_iterations: 2, until: { type: 'task', agent: 'two' } },
    { type: 'map_reduce', items: [1], workers: 1, map: agent, reduce: { type: 'task', agent: 'two' } },
    { type: 'pipeline', source: [1], stages: [agent] },
    { type: 'adaptive', workers: 2, topology: 'mesh', tasks: [agent] },
  ]
  for (const tree of trees) {
    const { body } = await kit.call(`POST ${base}/flows/validate`, { body: { root: tree } })
    assert.deepEqual(body, { valid: true, errors: [] }, tree.type)
  }
})

test('a flow that cannot run is refused with the first problem in the message and a list of all', async () => {
  const broken = { type: 'parallel', branches: [{ type: 'task', function: 'no' }, { type: 'task' }] }
  const { id } = await createFlow()
  for (const [route, body] of [
    [`POST ${base}/flows`, { name: 'broken', root: broken }],
    [`PATCH ${base}/flows/${id}`, { root: broken }],
    [`POST ${base}/flow-runs`, { root: broken }],
  ] as const) {
    const { status, body: answer } = await kit.call<ErrorAnswer>(route, { body })
    assert.deepEqual([status, answer.error.code], [400, 'INVALID_REQUEST'], route)
    assert.equal(answer.error.message, 'root.branches[0].function: there is no function called no.')
    assert.deepEqual(
      problemsOf(answer).map((problem) => problem.path),
      ['root.branches[0].function', 'root.branches[1]'],
    )
  }
})

test('a stored flow whose agent was deleted since is refused when it is started', async () => {
  const agent = await kit.createAgent(project.id, { name: 'leaving' })
  const { id } = await createFlow({ root: { type: 'task', agent: 'leaving' } })
  const start = () => kit.call<ErrorAnswer>(`POST ${base}/flow-runs`, { body: { flow_id: id } })
  assert.equal((await start()).status, 202)
  await kit.call(`DELETE ${base}/agents/${agent.id}`)
  const refused = await start()
  assert.deepEqual([refused.status, refused.body.error.message], [400, 'root.agent: there is no agent called leaving.'])
})

test('the runs of a deleted flow stay', async () => {
  const { id } = await createFlow()
  const run = (await kit.call<FlowRun>(`POST ${base}/flow-runs`, { body: { flow_id: id } })).body
  assert.equal(run.flow_id, id)
  await kit.call(`DELETE ${base}/flows/${id}`)
  const { body } = await kit.call<FlowRun>(`GET ${base}/flow-runs/${run.id}`)
  assert.deepEqual([body.flow_id, body.status], [null, 'queued'])
})

test('where nobody works on flows, those who do are told of what is started, cancelled and given more workers', async () => {
  const client = await kit.pool.connect()
  const heard: string[] = []
  client.on('notification', ({ payload }) => heard.push(payload ?? ''))
  await client.query('listen muster_flow')
  // The notice about a flow run of an earlier test may come late.
  const ofThis = (id: string): string[] => heard.filter((payload) => payload === id)
  const told = async (id: string, count: number): Promise<void> => {
    while (ofThis(id).length < count) await client.query('select 1')
  }
  try {
    const { id } = (await kit.call<FlowRun>(`POST ${base}/flow-runs`, { body: { root: f } })).body
    await told(id, 1)
    await kit.call(`POST ${base}/flow-runs/${id}/workers`, { body: { add: 1 } })
    await told(id, 2)
    const cancelled = await kit.call<FlowRun>(`POST ${base}/flow-runs/${id}/cancel`)
    await told(id, 3)
    assert.deepEqual([cancelled.status, cancelled.body.status], [200, 'queued'])
    await kit.call(`POST ${base}/flow-runs/${id}/cancel`)
    await client.query('select 1')
    assert.equal(ofThis(id).length, 3, 'a second cancel sends no notice')
  } finally {
    client.release(true)
  }
})
