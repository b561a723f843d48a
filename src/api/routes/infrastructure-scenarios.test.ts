// Every scenario of the infrastructure specification that the API shows, under its name. The scenarios of the clock are
// in triggers/scenarios-schedule.test.ts, those of the pages in test/system/console-agents.test.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp, INSTANCE_ID } from '../../../test/kit/app.ts'
import { createScriptedModel, type Script, type ScriptedCall } from '../../../test/kit/scripted-model.ts'
import type { Agent } from '../../kernel/agent.ts'
import type { Model, ModelRequest } from '../../kernel/model-call.ts'
import type { GraphObject, ObjectVersion, ProcessingEntry } from '../../kernel/object.ts'
import type { Run, Step } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'
import { abandonStuck } from '../../triggers/abandon-stuck.ts'

const models = new Map<string, Model>()
const kit = await createTestApp({ models })
const { pool, clock } = kit
const project = await kit.createProject('Graph')
const base = `/api/projects/${project.id}`
const member = await kit.createKey(project.id, 'member')

const post = async <Body>(path: string, body?: unknown, token?: string): Promise<Body> => {
  const answer = await kit.call<Body>(`POST ${base}${path}`, {
    ...(body === undefined ? {} : { body }),
    ...(token ? { token } : {}),
  })
  assert.ok(answer.status < 300, `${path}: ${answer.status} ${answer.text}`)
  return answer.body
}
const get = async <Body>(path: string): Promise<Body> => (await kit.call<Body>(`GET ${base}${path}`)).body
const items = async <Item>(path: string): Promise<Item[]> => (await get<{ items: Item[] }>(path)).items
const createObject = (type: string, properties: Record<string, unknown> = {}) =>
  post<GraphObject>('/objects', { type, properties })

let named = 0
/** An agent with a model of its own. */
async function agentThat(script: Script, input: Parameters<typeof kit.createAgent>[1] = {}): Promise<Agent> {
  const name = `model ${++named}`
  models.set(name, createScriptedModel(script))
  return kit.createAgent(project.id, {
    name: `agent ${named}`,
    model: { provider: 'test', name },
    tools: ['object_create', 'object_update', 'object_delete', 'object_get', 'object_search', 'relationship_create'],
    ...input,
  })
}

const reactsTo = (objectTypes: string[], config: Record<string, unknown> = {}) =>
  ({ trigger_type: 'reaction', reaction_config: { objectTypes, ...config } }) as const

/** A script that makes these calls in its first step, then ends. */
const calling =
  (...calls: ScriptedCall[]): Script =>
  (request) =>
    isFirst(request) ? { calls } : { text: 'Done.' }
const saying =
  (text: string): Script =>
  () => ({ text })
const isFirst = (request: ModelRequest): boolean => !request.prompt.some((message) => message.role === 'assistant')

const log = (agent: Agent) => items<ProcessingEntry>(`/agents/${agent.id}/processing-log`)
const runsOf = (agent: Agent) => items<Run>(`/runs?agent_id=${agent.id}`)

/** Waits until every entry of the agent is settled. */
async function settled(agent: Agent, count: number): Promise<ProcessingEntry[]> {
  for (;;) {
    const entries = await log(agent)
    if (entries.length >= count && entries.every((entry) => !['pending', 'processing'].includes(entry.status)))
      return entries
    await new Promise(setImmediate)
  }
}

async function trigger(agent: Agent, input: unknown = 'Go.'): Promise<{ run: Run; steps: Step[] }> {
  const run = await post<Run>(`/agents/${agent.id}/trigger`, { input })
  return { run, steps: await items<Step>(`/runs/${run.id}/steps`) }
}

const toolStep = (steps: Step[]) => steps.find((step) => step.kind === 'tool')

test('Schema Definition: agents and agent_runs have the columns of the specification', async () => {
  const { rows } = await pool.query<{ name: string; type: string; nullable: string; fallback: string | null }>(
    `select table_name || '.' || column_name as name, data_type as type, is_nullable as nullable, column_default as fallback
     from information_schema.columns where table_name in ('agents', 'agent_runs')`,
  )
  const columns = new Map(rows.map((row) => [row.name, row]))
  for (const column of ['prompt', 'cron_schedule', 'role']) assert.ok(columns.has(`agents.${column}`), column)
  const expected = {
    parent_run_id: ['uuid', 'YES', null],
    step_count: ['integer', 'NO', '0'],
    max_steps: ['integer', 'YES', null],
    resumed_from: ['uuid', 'YES', null],
    error_message: ['text', 'YES', null],
    completed_at: ['timestamp with time zone', 'YES', null],
  }
  for (const [column, facts] of Object.entries(expected)) {
    const { type, nullable, fallback } = columns.get(`agent_runs.${column}`) ?? assert.fail(column)
    assert.deepEqual([type, nullable, fallback], facts, column)
  }
})

test('Agent Run Extended Fields: a sub-run names its parent, its steps and its limit', async () => {
  const child = await agentThat(saying('Counted.'), { max_steps: 7 })
  const parent = await agentThat(calling({ name: 'spawn_agent', args: { agent: child.name, input: 'Count.' } }), {
    tools: ['spawn_agent'],
  })
  const { run } = await trigger(parent)
  const [sub] = await runsOf(child)
  assert.equal(sub?.parent_run_id, run.id)
  assert.equal(sub?.step_count, 1)
  assert.equal(sub?.max_steps, 7)
})

test('Successful Run: the record is completed, with its steps and no error', async () => {
  const { run } = await trigger(await agentThat(calling({ name: 'object_search', args: {} })))
  assert.equal(run.status, 'completed')
  assert.notEqual(run.completed_at, null)
  assert.equal(run.step_count, 2)
  assert.equal(run.error_message, null)
})

test('Failed Run: the record is failed, with the error and the time', async () => {
  const { run } = await trigger(
    await agentThat(() => ({ fail: { message: 'The model is broken.', isRetryable: false } })),
  )
  assert.equal(run.status, 'failed')
  assert.match(run.error_message ?? '', /The model is broken/)
  assert.notEqual(run.completed_at, null)
})

test('Paused Run: at the step limit the record keeps the summary and can be resumed', async () => {
  const agent = await agentThat(
    (request) =>
      request.toolChoice === 'none' ? { text: 'Half done.' } : { calls: [{ name: 'object_search', args: {} }] },
    { max_steps: 1 },
  )
  const { run } = await trigger(agent)
  assert.deepEqual([run.status, run.pause_reason, run.summary], ['paused', 'step_limit', 'Half done.'])
  const resumed = await post<Run>(`/agents/${agent.id}/trigger`, { input: 'On.', resume_run_id: run.id })
  assert.equal(resumed.resumed_from, run.id)
})

test('Reaction Agent Bootstrap: an enabled reaction agent is triggered by a matching event', async () => {
  const agent = await agentThat(saying('Seen.'), reactsTo(['Bootstrap']))
  const object = await createObject('Bootstrap', { name: 'first' })
  const [entry] = await settled(agent, 1)
  assert.equal(entry?.graph_object_id, object.id)
  const [run] = await runsOf(agent)
  assert.equal(run?.id, entry?.run_id)
  assert.deepEqual(run?.trigger, { type: 'reaction', entry_id: entry?.id })
  assert.deepEqual(run?.input, {
    event: 'created',
    object: { id: object.id, type: 'Bootstrap', key: null, version: 1, properties: { name: 'first' } },
    previous_version: null,
    actor: { type: 'user', id: INSTANCE_ID },
  })
})

test('Agent Configuration with Reaction Trigger: an agent without a valid reaction_config is refused', async () => {
  const refused = [{}, { reaction_config: null }, { reaction_config: {} }, { reaction_config: { objectTypes: [] } }]
  for (const [index, fields] of refused.entries()) {
    const body = { name: `refused ${index}`, trigger_type: 'reaction', ...fields }
    const { status } = await kit.call(`POST ${base}/agents`, { body })
    assert.equal(status, 400, JSON.stringify(fields))
  }
})

test('Event Filtering by Object Type: only events of the type trigger the agent', async () => {
  const agent = await agentThat(saying('Seen.'), reactsTo(['Person']))
  await createObject('Company')
  await createObject('person')
  const person = await createObject('Person')
  const entries = await settled(agent, 1)
  assert.deepEqual(
    entries.map((entry) => entry.graph_object_id),
    [person.id],
  )
})

test('Event Filtering by Event Type: only events of that kind trigger the agent', async () => {
  const agent = await agentThat(saying('Seen.'), reactsTo(['Filtered'], { events: ['created'] }))
  const { id } = await createObject('Filtered')
  await kit.call(`PATCH ${base}/objects/${id}`, { body: { properties: { a: 1 } } })
  await kit.call(`DELETE ${base}/objects/${id}`)
  const entries = await settled(agent, 1)
  assert.deepEqual(
    entries.map((entry) => entry.event_type),
    ['created'],
  )
})

test('User-Initiated Change: the object says which user made it', async () => {
  const object = await post<GraphObject>('/objects', { type: 'ByUser', properties: {} }, member.key)
  assert.deepEqual([object.actor_type, object.actor_id], ['user', member.id])
})

test('Agent-Initiated Change: the object says which agent made it, and its history which run', async () => {
  const agent = await agentThat(calling({ name: 'object_create', args: { type: 'ByAgent', properties: { a: 1 } } }))
  const { run } = await trigger(agent)
  const [object] = await items<GraphObject>('/objects?type=ByAgent')
  assert.deepEqual([object?.actor_type, object?.actor_id], ['agent', agent.id])
  const [version] = await items<ObjectVersion>(`/objects/${object?.id}/history`)
  assert.deepEqual([version?.op, version?.run_id, version?.approved_by], ['create', run.id, null])
})

test('Self-Trigger Prevention: a change by an agent does not trigger that agent, and triggers others', async () => {
  const update: Script = (request) => {
    const { object } = inputOf(request)
    return isFirst(request)
      ? { calls: [{ name: 'object_update', args: { id: object.id, properties: { seen: true } } }] }
      : { text: 'Done.' }
  }
  const agent = await agentThat(update, reactsTo(['Self']))
  const other = await agentThat(saying('Seen.'), reactsTo(['Self'], { events: ['updated'] }))
  await createObject('Self')
  assert.equal((await settled(other, 1)).length, 1)
  assert.equal((await settled(agent, 1)).length, 1)
})

test('Processing Log Entry Creation: the change makes a pending entry that names its object', async () => {
  const agent = await agentThat(saying('Seen.'), { ...reactsTo(['Entry']) })
  const client = await pool.connect()
  try {
    await client.query('begin')
    const written = await kit.services.writer.writeIn(client, {
      projectId: project.id,
      change: { op: 'create', type: 'Entry', key: null, properties: {} },
      author: {
        type: 'user',
        id: null,
        runId: null,
        approvedBy: null,
        depth: 0,
        actor: { type: 'instance_admin', id: null, requestId: null, address: null },
      },
    })
    assert.equal(written.kind, 'written')
    const entries = await client.query(
      'select agent_id, object_version, event_type, status from processing_log where agent_id = $1',
      [agent.id],
    )
    assert.deepEqual(entries.rows, [
      { agent_id: agent.id, object_version: 1, event_type: 'created', status: 'pending' },
    ])
  } finally {
    await client.query('rollback')
    client.release()
  }
})

test('Processing Log Status Updates: processing, then completed or failed with the message', async () => {
  const gate = Promise.withResolvers<void>()
  const agent = await agentThat(
    (request) => {
      const { object } = inputOf(request)
      return object.properties.bad
        ? { fail: { message: 'It is bad.', isRetryable: false } }
        : { text: 'Good.', waitFor: gate.promise }
    },
    reactsTo(['Status']),
  )
  await createObject('Status', { bad: false })
  let entry: ProcessingEntry | undefined
  while (entry?.status !== 'processing') [entry] = await log(agent)
  assert.notEqual(entry.started_at, null)
  gate.resolve()
  await createObject('Status', { bad: true })
  const entries = await settled(agent, 2)
  assert.deepEqual(
    entries.map(({ status }) => status),
    ['failed', 'completed'],
  )
  assert.match(entries[0]?.error_message ?? '', /It is bad/)
  assert.equal(entries[1]?.error_message, null)
  assert.ok(entries.every((each) => each.completed_at !== null))
})

test('Stuck Job Recovery: after five minutes of processing the entry is abandoned and its run cancelled', async () => {
  const agent = await agentThat(() => ({ text: 'Late.', waitFor: 'abort' }), reactsTo(['Stuck']))
  await createObject('Stuck')
  let entry: ProcessingEntry | undefined
  while (entry?.status !== 'processing') [entry] = await log(agent)
  await clock.advance(4 * 60_000)
  await abandonStuck({ pool, journal: kit.services.journal })
  assert.equal((await log(agent))[0]?.status, 'processing')
  await clock.advance(61_000)
  await abandonStuck({ pool, journal: kit.services.journal })
  assert.equal((await log(agent))[0]?.status, 'abandoned')
  let run: Run | undefined
  while (run?.status !== 'cancelled') [run] = await runsOf(agent)
  const [late] = await log(agent)
  assert.equal(late?.status, 'abandoned')
  assert.match(late?.error_message ?? '', /processing_stuck_after/)

  models.set(
    agent.model?.name ?? '',
    createScriptedModel(() => ({ text: 'In time.' })),
  )
  const retried = await post<ProcessingEntry>(`/agents/${agent.id}/processing-log/${late?.id}/retry`)
  assert.equal(retried.id, late?.id)
  assert.notEqual(retried.run_id, late?.run_id)
  assert.equal((await settled(agent, 1))[0]?.status, 'completed')
})

/** The input that a reacting agent was given. */
function inputOf(request: ModelRequest): { event: string; object: GraphObject } {
  const user = request.prompt.find((message) => message.role === 'user')
  const part = user?.role === 'user' ? user.content[0] : undefined
  return JSON.parse(part?.type === 'text' ? part.text : '{}')
}

const suggestions = (agent: Agent) =>
  items<Task>('/tasks?kind=suggestion').then((tasks) => tasks.filter((task) => task.created_by.id === agent.id))

/** An object, and the suggestion of an agent to rename it. */
async function suggested(mode: 'suggest' | 'hybrid', args: Record<string, unknown> = {}) {
  const object = await createObject('Renamed', { name: 'old', kept: 1 })
  const call = {
    name: 'object_update',
    args: { id: object.id, properties: { name: 'new' }, reasoning: 'It is better.', ...args },
  }
  const agent = await agentThat(calling(call), { execution_mode: mode })
  const { run, steps } = await trigger(agent)
  return { object, agent, run, step: toolStep(steps), tasks: await suggestions(agent) }
}

test('Suggest Mode: a task with the changes and the reasoning is made, and the graph is not touched', async () => {
  const { object, agent, run, tasks, step } = await suggested('suggest')
  assert.deepEqual(await get(`/objects/${object.id}`), object)
  const [task] = tasks
  assert.equal(tasks.length, 1)
  assert.deepEqual(
    [task?.kind, task?.status, task?.assigned_to, task?.reasoning, task?.run_id],
    ['suggestion', 'pending', null, 'It is better.', run.id],
  )
  assert.deepEqual(task?.created_by, { type: 'agent', id: agent.id })
  assert.deepEqual(task?.changes, [
    {
      op: 'update',
      object_type: 'Renamed',
      object_id: object.id,
      base_version: 1,
      before: { name: 'old', kept: 1 },
      after: { name: 'new', kept: 1 },
    },
  ])
  assert.equal(step?.kind === 'tool' && step.is_error, false)
})

test('Execute Mode: the change is made at once', async () => {
  const object = await createObject('Executed', { name: 'old' })
  const call = { name: 'object_update', args: { id: object.id, properties: { name: 'new' } } }
  const agent = await agentThat(calling(call), { execution_mode: 'execute' })
  await trigger(agent)
  const changed = await get<GraphObject>(`/objects/${object.id}`)
  assert.deepEqual([changed.properties.name, changed.version, changed.actor_id], ['new', 2, agent.id])
  assert.deepEqual(await suggestions(agent), [])
})

test('Hybrid Mode: the agent chooses between suggesting and executing', async () => {
  const put = await suggested('hybrid', { apply: 'suggest' })
  assert.equal(put.tasks.length, 1)
  assert.equal((await get<GraphObject>(`/objects/${put.object.id}`)).version, 1)
  const made = await suggested('hybrid', { apply: 'execute' })
  assert.equal(made.tasks.length, 0)
  assert.equal((await get<GraphObject>(`/objects/${made.object.id}`)).version, 2)
  const unsaid = await suggested('hybrid')
  assert.ok(unsaid.step?.kind === 'tool' && unsaid.step.is_error)
  assert.equal((await get<GraphObject>(`/objects/${unsaid.object.id}`)).version, 1)
})

test('Capability Restriction: a delete without the capability is rejected and logged', async () => {
  const object = await createObject('Precious')
  const agent = await agentThat(calling({ name: 'object_delete', args: { id: object.id } }), {
    capabilities: { canDeleteObjects: false },
  })
  const { run, steps } = await trigger(agent)
  const step = toolStep(steps)
  assert.ok(step?.kind === 'tool' && step.is_error && step.blocked === 'capability')
  assert.equal((await get<GraphObject>(`/objects/${object.id}`)).deleted_at, null)
  const audit = await items<{ action: string; actor: { type: string; id: string }; details: Record<string, unknown> }>(
    '/audit',
  )
  const refusal = audit.find((entry) => entry.action === 'capability.refused')
  assert.deepEqual(refusal?.actor, { type: 'agent', id: agent.id })
  assert.equal(refusal?.details.run_id, run.id)
})

test('Object Type Restriction: creating an object of another type is rejected', async () => {
  const agent = await agentThat(calling({ name: 'object_create', args: { type: 'Document', properties: {} } }), {
    capabilities: { allowedObjectTypes: ['Person', 'Company'] },
  })
  const { steps } = await trigger(agent)
  const step = toolStep(steps)
  assert.ok(step?.kind === 'tool' && step.is_error && step.blocked === 'capability')
  assert.deepEqual(await items('/objects?type=Document'), [])
})

test('Approve Suggestion: the changes are applied in the name of the agent and the task is completed', async () => {
  const { object, agent, run, tasks } = await suggested('suggest')
  const task = await post<Task>(`/tasks/${tasks[0]?.id}/approve`, undefined, member.key)
  assert.equal(task.status, 'completed')
  assert.notEqual(task.completed_at, null)
  const changed = await get<GraphObject>(`/objects/${object.id}`)
  assert.deepEqual(changed.properties, { name: 'new', kept: 1 })
  assert.deepEqual([changed.version, changed.actor_type, changed.actor_id], [2, 'agent', agent.id])
  const [version] = await items<ObjectVersion>(`/objects/${object.id}/history`)
  assert.deepEqual([version?.run_id, version?.approved_by], [run.id, member.id])
})

test('Reject Suggestion: nothing changes and the task is rejected', async () => {
  const { object, tasks } = await suggested('suggest')
  const task = await post<Task>(`/tasks/${tasks[0]?.id}/reject`, { reason: 'No.' })
  assert.equal(task.status, 'rejected')
  assert.deepEqual(await get(`/objects/${object.id}`), object)
  const again = await kit.call(`POST ${base}/tasks/${task.id}/approve`)
  assert.equal(again.status, 409)
})
