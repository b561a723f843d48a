import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { insertRuns } from '../../../test/kit/runs.ts'
import { newId } from '../../kernel/id.ts'
import type { Task } from '../../kernel/task.ts'
import { createAskHuman } from '../../tasks/ask-human.ts'

const kit = await createTestApp()
const project = await kit.createProject()
const key = await kit.createKey(project.id, 'member')
const agent = await kit.createAgent(project.id)
const path = `/api/projects/${project.id}/tasks`
const people = createAskHuman({ pool: kit.pool })

interface Failure {
  error: { code: string; message: string }
}
interface List {
  items: Task[]
  next_cursor: string | null
}
const create = (body: object, headers: Record<string, string> = {}) =>
  kit.call<Task & Failure>(`POST ${path}`, { token: key.key, body, headers })
const patch = (id: string, body: object) => kit.call<Task & Failure>(`PATCH ${path}/${id}`, { token: key.key, body })
const read = async (id: string): Promise<Task> => (await kit.call<Task>(`GET ${path}/${id}`)).body

/** A run that waits for people, and its question. */
async function ask(question = 'Which one?'): Promise<{ runId: string; taskId: string }> {
  const [runId = ''] = await insertRuns(kit.pool, project.id, 1)
  const taskId = newId()
  await people.ask({ taskId, projectId: project.id, runId, agentId: agent.id, question })
  await kit.pool.query(
    `update agent_runs set status = 'paused', pause_reason = 'human', waits_for = 'human' where id = $1`,
    [runId],
  )
  return { runId, taskId }
}
const readyAt = async (runId: string): Promise<Date | null> =>
  (await kit.pool.query('select ready_at from agent_runs where id = $1', [runId])).rows[0].ready_at

async function insertSuggestion(): Promise<string> {
  const id = newId()
  const change = { op: 'create', object_type: 'note', object_id: null, base_version: null, before: null, after: {} }
  await kit.pool.query(
    `insert into tasks (id, project_id, kind, title, created_by, changes, reasoning)
     values ($1, $2, 'suggestion', 'Add a note', $3, $4, 'It helps.')`,
    [id, project.id, JSON.stringify({ type: 'agent', id: agent.id }), JSON.stringify([change])],
  )
  return id
}

test('a task needs nothing but a title', async () => {
  const answer = await create({ title: 'Tidy up' })
  assert.equal(answer.status, 201)
  const { id, created_at, ...fields } = answer.body
  assert.ok(id && created_at)
  assert.deepEqual(fields, {
    kind: 'work',
    title: 'Tidy up',
    description: '',
    priority: 'medium',
    status: 'pending',
    assigned_to: null,
    created_by: { type: 'user', id: key.id },
    parent_task_id: null,
    result: null,
    error_message: null,
    changes: null,
    reasoning: null,
    run_id: null,
    progress: { done: 0, total: 1, note: null },
    metadata: {},
    completed_at: null,
  })
  assert.deepEqual(await read(id), answer.body)
})

test('every given field is kept', async () => {
  const parent = (await create({ title: 'Whole' })).body
  const given = {
    title: 'Part',
    description: 'Of it.',
    priority: 'urgent',
    assigned_to: agent.id,
    parent_task_id: parent.id,
    metadata: { competencies: ['law'], deep: [{ a: null }] },
  }
  const { body } = await create(given)
  assert.deepEqual(body, { ...body, ...given })
})

test('an assignee or a parent that does not exist is refused', async () => {
  const elsewhere = await kit.createProject()
  const stranger = await kit.createAgent(elsewhere.id)
  for (const assigned_to of [newId(), stranger.id]) {
    const answer = await create({ title: 'x', assigned_to })
    assert.equal(answer.status, 400)
    assert.match(answer.body.error.message, /assigned_to names no agent/)
  }
  const answer = await create({ title: 'x', parent_task_id: newId() })
  assert.equal(answer.status, 400)
  assert.match(answer.body.error.message, /parent_task_id names no task/)
})

test('the same Idempotency-Key makes one task', async () => {
  const headers = { 'idempotency-key': 'task' }
  const first = await create({ title: 'once' }, headers)
  assert.equal((await create({ title: 'once' }, headers)).text, first.text)
})

test('tasks are listed newest first, by kind, status and assignee', async () => {
  const own = await kit.createProject()
  const worker = await kit.createAgent(own.id)
  const list = `/api/projects/${own.id}/tasks`
  const ids: string[] = []
  for (const body of [{ title: '1' }, { title: '2', assigned_to: worker.id }, { title: '3' }]) {
    ids.push((await kit.call<Task>(`POST ${list}`, { body })).body.id)
  }
  await kit.call(`PATCH ${list}/${ids[2]}`, { body: { status: 'completed' } })
  const found = async (query: string): Promise<number[]> => {
    const { items } = (await kit.call<List>(`GET ${list}?${query}`)).body
    return items.map((task) => ids.indexOf(task.id) + 1)
  }
  assert.deepEqual(await found(''), [3, 2, 1])
  assert.deepEqual(await found('status=pending'), [2, 1])
  assert.deepEqual(await found('status=completed&kind=work'), [3])
  assert.deepEqual(await found('kind=escalation'), [])
  assert.deepEqual(await found(`assigned_to=${worker.id}`), [2])
  assert.deepEqual(await found(`assigned_to=${newId()}`), [])
  assert.deepEqual(await found('assigned_to=none'), [3, 1])
  assert.deepEqual(await found('assigned_to=none&kind=work&status=pending'), [1])
  assert.deepEqual(await found('assigned_to=none&status=completed'), [3])
  const page = (await kit.call<List>(`GET ${list}?limit=2`)).body
  assert.deepEqual(await found(`limit=2&cursor=${page.next_cursor}`), [1])
})

test('a change leaves the other fields alone; metadata is replaced as a whole', async () => {
  const before = (await create({ title: 'a', metadata: { a: 1, b: 2 } })).body
  const after = (await patch(before.id, { title: 'b', priority: 'low', assigned_to: agent.id, metadata: { a: 3 } }))
    .body
  assert.deepEqual(after, { ...before, title: 'b', priority: 'low', assigned_to: agent.id, metadata: { a: 3 } })
  const unassigned = (await patch(before.id, { assigned_to: null, description: 'c' })).body
  assert.deepEqual(unassigned, { ...after, assigned_to: null, description: 'c' })
  assert.deepEqual((await patch(before.id, {})).body, unassigned)
})

for (const result of ['text', 42, false, { a: [1] }, [null], null]) {
  test(`a task is completed with ${JSON.stringify(result)}`, async () => {
    const { id } = (await create({ title: 'x' })).body
    const { body } = await patch(id, { status: 'completed', result })
    assert.equal(body.status, 'completed')
    assert.deepEqual(body.result, result)
    assert.ok(body.completed_at)
    assert.deepEqual(await read(id), body)
  })
}

test('a task is resolved once', async () => {
  for (const status of ['completed', 'cancelled']) {
    const { id } = (await create({ title: 'x' })).body
    const resolved = (await patch(id, { status })).body
    for (const body of [{ status: 'completed' }, { status: 'cancelled' }, { status: 'pending' }, { result: 'other' }]) {
      const answer = await patch(id, body)
      assert.equal(answer.status, 409, JSON.stringify(body))
      assert.equal(answer.body.error.code, 'CONFLICT')
    }
    assert.deepEqual(await read(id), resolved)
    assert.equal((await patch(id, { title: 'renamed' })).body.title, 'renamed')
  }
})

test('of two requests that resolve a task at once one succeeds', async () => {
  const { id } = (await create({ title: 'x' })).body
  const answers = await Promise.all([1, 2, 3, 4].map((result) => patch(id, { status: 'completed', result })))
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 409, 409, 409])
  const winner = answers.find(({ status }) => status === 200)
  assert.equal((await read(id)).result, winner?.body.result)
})

test('a failed task may be tried again', async () => {
  const { id } = (await create({ title: 'x' })).body
  await kit.pool.query(
    `update tasks set status = 'failed', error_message = 'no', completed_at = muster.now() where id = $1`,
    [id],
  )
  assert.equal((await patch(id, { status: 'completed' })).status, 409)
  const { body } = await patch(id, { status: 'pending' })
  assert.deepEqual([body.status, body.error_message, body.completed_at], ['pending', null, null])
})

test('a patch neither resolves a suggestion nor rewrites it', async () => {
  const id = await insertSuggestion()
  const before = await read(id)
  for (const status of ['pending', 'completed', 'cancelled']) {
    const answer = await patch(id, { status })
    assert.equal(answer.status, 409)
    assert.match(answer.body.error.message, /approved or rejected/)
  }
  for (const body of [{ changes: [] }, { created_by: { type: 'user', id: null } }, { kind: 'work' }]) {
    assert.equal((await patch(id, body)).status, 400)
  }
  assert.deepEqual(await read(id), before)
  assert.equal((await patch(id, { priority: 'high' })).body.priority, 'high')
})

for (const status of ['completed', 'cancelled']) {
  test(`a question that is ${status} wakes its run, and the workers are told`, async () => {
    const { runId, taskId } = await ask()
    const before = kit.services.readyCount()
    assert.equal(await readyAt(runId), null)
    assert.equal((await patch(taskId, { status })).status, 200)
    assert.ok(await readyAt(runId))
    assert.ok(kit.services.readyCount() > before)
  })
}

test('a question that is only edited wakes no run', async () => {
  const { runId, taskId } = await ask()
  await patch(taskId, { priority: 'urgent', result: 'a draft' })
  assert.equal(await readyAt(runId), null)
})

test('an answer that cannot be stored with its wake-up is not stored at all', async () => {
  const { runId, taskId } = await ask()
  await kit.pool.query('alter table agent_runs rename column waits_for to lost')
  const answer = await patch(taskId, { status: 'completed', result: 'yes' })
  await kit.pool.query('alter table agent_runs rename column lost to waits_for')
  assert.equal(answer.status, 500)
  assert.equal((await read(taskId)).status, 'pending')
  assert.equal(await readyAt(runId), null)
})

test('the audit notes the authors of a task and of its changes', async () => {
  const { id } = (await create({ title: 'noted' })).body
  await patch(id, { status: 'completed' })
  const { rows } = await kit.pool.query(
    'select action, actor_id, details from audit_log where target_id = $1 order by seq',
    [id],
  )
  assert.deepEqual(rows, [
    { action: 'task.create', actor_id: key.id, details: { title: 'noted' } },
    { action: 'task.update', actor_id: key.id, details: { changed: ['status'], status: 'completed' } },
  ])
})
