import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { dumpRows } from '../../../test/kit/database.ts'
import { inTransaction } from '../../db/transaction.ts'
import { newId } from '../../kernel/id.ts'
import type { GraphObject, ObjectVersion, ProcessingEntry, Relationship } from '../../kernel/object.ts'
import type { SuggestedChange, Task } from '../../kernel/task.ts'
import { suggest } from '../../tasks/suggest.ts'

const kit = await createTestApp()
const { pool } = kit
const project = await kit.createProject('Review')
const base = `/api/projects/${project.id}`
const agent = await kit.createAgent(project.id, { name: 'Suggester', execution_mode: 'suggest' })
const member = await kit.createKey(project.id, 'member')

const create = async (properties: Record<string, unknown> = {}, key?: string): Promise<GraphObject> => {
  const body = { type: 'Person', properties, ...(key ? { key } : {}) }
  return (await kit.call<GraphObject>(`POST ${base}/objects`, { body })).body
}
const read = async (id: string) => (await kit.call<GraphObject>(`GET ${base}/objects/${id}`)).body
const history = async (id: string) =>
  (await kit.call<{ items: ObjectVersion[] }>(`GET ${base}/objects/${id}/history`)).body.items
const approve = (id: string) => kit.call<Task>(`POST ${base}/tasks/${id}/approve`, { token: member.key })
const reject = (id: string) => kit.call<Task>(`POST ${base}/tasks/${id}/reject`, { token: member.key })
const task = async (id: string) => (await kit.call<Task>(`GET ${base}/tasks/${id}`)).body

/** A suggestion like one that an agent's tool call makes. */
async function suggested(change: SuggestedChange, depth = 0): Promise<{ id: string; runId: string }> {
  const id = newId()
  const runId = newId()
  const shared = { projectId: project.id, agentId: agent.id, reasoning: 'Because.', depth }
  await inTransaction(pool, (tx) => suggest(tx, { taskId: id, runId, change, ...shared }))
  return { id, runId }
}
const renaming = (object: GraphObject, name: string): SuggestedChange => ({
  op: 'update',
  object_type: object.type,
  object_id: object.id,
  base_version: object.version,
  before: object.properties,
  after: { ...object.properties, name },
})

test('a suggestion with 20 approvals at once is applied once, by the agent', async () => {
  const object = await create({ name: 'old' })
  const { id, runId } = await suggested(renaming(object, 'new'))
  const answers = await Promise.all(Array.from({ length: 20 }, () => approve(id)))
  assert.deepEqual(answers.map((answer) => answer.status).toSorted(), [200, ...Array.from({ length: 19 }, () => 409)])
  const [newest, ...older] = await history(object.id)
  assert.equal(older.length, 1)
  assert.deepEqual(
    [newest?.version, newest?.actor_type, newest?.actor_id, newest?.run_id, newest?.approved_by],
    [2, 'agent', agent.id, runId, member.id],
  )
  assert.deepEqual(newest?.properties, { name: 'new' })
})

test('among approvals and rejections at once a single one decides', async () => {
  const object = await create({ name: 'old' })
  const { id } = await suggested(renaming(object, 'new'))
  const answers = await Promise.all([approve(id), reject(id), approve(id), reject(id)])
  assert.equal(answers.filter((answer) => answer.status === 200).length, 1)
  const { status } = await task(id)
  const { version } = await read(object.id)
  assert.equal(version, status === 'completed' ? 2 : 1)
})

test('after a change of the object an approval is 409, changes nothing, and the task is marked as stale', async () => {
  const object = await create({ name: 'old' })
  const { id } = await suggested(renaming(object, 'new'))
  await kit.call(`PATCH ${base}/objects/${object.id}`, { body: { properties: { other: 1 } } })
  const moved = await read(object.id)
  for (let times = 0; times < 2; times++) {
    const answer = await kit.call<{ error: { code: string; message: string } }>(`POST ${base}/tasks/${id}/approve`)
    assert.deepEqual([answer.status, answer.body.error.code], [409, 'CONFLICT'])
    assert.match(answer.body.error.message, /from version 1 to 2/)
  }
  assert.deepEqual(await read(object.id), moved)
  const stale = await task(id)
  assert.deepEqual([stale.status, stale.metadata.stale], ['pending', true])
  assert.equal((await reject(id)).status, 200)
  assert.equal((await task(id)).status, 'rejected')
})

test('suggestions to create, delete and relate are applied as they were shown', async () => {
  const doomed = await create({ name: 'doomed' })
  const friend = await create({ name: 'friend' })
  const nobody = { object_id: null, base_version: null, before: null }
  const born = await suggested({ op: 'create', object_type: 'Person', key: 'born', ...nobody, after: { name: 'born' } })
  const gone = await suggested({
    op: 'delete',
    object_type: 'Person',
    object_id: doomed.id,
    base_version: 1,
    before: doomed.properties,
    after: null,
  })
  const edge = { type: 'knows', from_id: friend.id, to_id: friend.id, properties: { since: 1 } }
  const tied = await suggested({
    op: 'relate',
    object_type: 'Person',
    object_id: friend.id,
    base_version: null,
    before: null,
    after: edge,
  })
  for (const { id } of [born, gone, tied]) assert.equal((await approve(id)).status, 200)
  const { body } = await kit.call<{ items: GraphObject[] }>(`GET ${base}/objects?q=born`)
  assert.deepEqual([body.items[0]?.key, body.items[0]?.actor_id], ['born', agent.id])
  assert.notEqual((await read(doomed.id)).deleted_at, null)
  const relationships = await kit.call<{ items: Relationship[] }>(`GET ${base}/objects/${friend.id}/relationships`)
  assert.deepEqual(
    relationships.body.items.map(({ type, properties, actor_id, approved_by }) => [
      type,
      properties,
      actor_id,
      approved_by,
    ]),
    [['knows', { since: 1 }, agent.id, member.id]],
  )
  assert.deepEqual((await task(born.id)).result, {
    applied: [{ op: 'create', object_id: body.items[0]?.id, version: 1 }],
  })
})

const gone: { name: string; make: () => Promise<SuggestedChange>; says: RegExp }[] = [
  {
    name: 'whose key was taken',
    make: async () => {
      await create({}, 'taken')
      const nobody = { object_id: null, base_version: null, before: null }
      return { op: 'create', object_type: 'Person', key: 'taken', ...nobody, after: {} }
    },
    says: /type and key/,
  },
  {
    name: 'whose object was deleted',
    make: async () => {
      const object = await create({ name: 'a' })
      await kit.call(`DELETE ${base}/objects/${object.id}`)
      return renaming(object, 'b')
    },
    says: /deleted/,
  },
  {
    name: 'of an edge whose end was deleted',
    make: async () => {
      const object = await create({ name: 'a' })
      await kit.call(`DELETE ${base}/objects/${object.id}`)
      const after = { type: 'knows', from_id: object.id, to_id: object.id, properties: {} }
      return { op: 'relate', object_type: 'Person', object_id: object.id, base_version: null, before: null, after }
    },
    says: /gone/,
  },
]
for (const { name, make, says } of gone) {
  test(`a suggestion ${name} is 409 and stays pending as stale`, async () => {
    const { id } = await suggested(await make())
    const answer = await approve(id)
    assert.equal(answer.status, 409)
    assert.match(answer.text, says)
    assert.equal((await task(id)).metadata.stale, true)
  })
}

test('a stale suggestion that is applied after all is not stale any more', async () => {
  const inTheWay = await create({}, 'wanted')
  const nobody = { object_id: null, base_version: null, before: null }
  const { id } = await suggested({ op: 'create', object_type: 'Person', key: 'wanted', ...nobody, after: {} })
  await pool.query(`update tasks set metadata = '{"of":"us"}' where id = $1`, [id])
  assert.equal((await approve(id)).status, 409)
  assert.deepEqual(Object.keys((await task(id)).metadata).toSorted(), ['of', 'stale', 'stale_reason'])
  await kit.call(`DELETE ${base}/objects/${inTheWay.id}`)
  assert.deepEqual((await approve(id)).body.metadata, { of: 'us' })
  assert.deepEqual((await task(id)).metadata, { of: 'us' })
})

test('several suggestions are approved together, each by itself; one named twice is decided once and answered twice', async () => {
  const [one, two, three] = [await create({ n: 1 }), await create({ n: 2 }), await create({ n: 3 })]
  const ids = [
    (await suggested(renaming(one, 'a'))).id,
    (await suggested(renaming(two, 'b'))).id,
    (await suggested(renaming(three, 'c'))).id,
  ]
  await kit.call(`PATCH ${base}/objects/${two.id}`, { body: { properties: { n: 9 } } })
  const unknown = newId()
  const answer = await kit.call<{ results: { id: string; ok: boolean; error?: { code: string } }[] }>(
    `POST ${base}/tasks/approve`,
    { body: { ids: [...ids, unknown, ids[0], ids[1]?.toUpperCase(), ids[2]?.toUpperCase(), unknown] } },
  )
  assert.equal(answer.status, 200)
  assert.deepEqual(
    answer.body.results.map(({ id, ok, error }) => [id, ok, error?.code]),
    [
      [ids[0], true, undefined],
      [ids[1], false, 'CONFLICT'],
      [ids[2], true, undefined],
      [unknown, false, 'NOT_FOUND'],
      [ids[0], true, undefined],
      [ids[1]?.toUpperCase(), false, 'CONFLICT'],
      [ids[2]?.toUpperCase(), true, undefined],
      [unknown, false, 'NOT_FOUND'],
    ],
  )
  assert.equal((await history(three.id)).length, 2)
})

test('a task that is no suggestion can be neither approved nor rejected', async () => {
  const { body } = await kit.call<Task>(`POST ${base}/tasks`, { body: { title: 'Work' } })
  assert.equal((await approve(body.id)).status, 409)
  assert.equal((await reject(body.id)).status, 409)
  assert.equal((await approve(newId())).status, 404)
  assert.equal((await approve('x')).status, 404)
})

test('a patch changes the priority of a suggestion alone, before and after it is resolved', async () => {
  const { id } = await suggested(renaming(await create({ name: 'a' }), 'b'))
  const before = await task(id)
  const patches: [Record<string, unknown>, number][] = [
    [{ status: 'completed' }, 409],
    [{ status: 'cancelled' }, 409],
    [{ changes: [] }, 400],
    [{ created_by: { type: 'user', id: null } }, 400],
    [{ reasoning: 'x' }, 400],
    [{ title: 'Something harmless' }, 409],
    [{ description: 'x' }, 409],
    [{ metadata: {} }, 409],
    [{ metadata: { stale: false } }, 409],
    [{ result: 'x' }, 409],
    [{ assigned_to: null }, 409],
    [{ assigned_to: agent.id }, 409],
    [{ priority: 'high', title: 'Something harmless' }, 409],
    [{ priority: 'high' }, 200],
  ]
  const patchAll = async (): Promise<void> => {
    for (const [body, status] of patches) {
      assert.equal((await kit.call(`PATCH ${base}/tasks/${id}`, { body })).status, status, JSON.stringify(body))
    }
  }
  await patchAll()
  assert.deepEqual(await task(id), { ...before, priority: 'high' })
  assert.equal((await reject(id)).status, 200)
  const rejected = await task(id)
  await patchAll()
  assert.deepEqual(await task(id), rejected)
})

test('a viewer decides nothing', async () => {
  const viewer = await kit.createKey(project.id, 'viewer')
  const { id } = await suggested(renaming(await create({ name: 'a' }), 'b'))
  const before = await dumpRows(pool)
  for (const path of [`${id}/approve`, `${id}/reject`]) {
    assert.equal((await kit.call(`POST ${base}/tasks/${path}`, { token: viewer.key })).status, 403)
  }
  assert.deepEqual((await dumpRows(pool)).objects, before.objects)
})

test('an approved change triggers reactions like a change by the agent, at the depth of the run that suggested it', async () => {
  const reaction_config = { objectTypes: ['Person'], events: ['updated' as const] }
  const other = await kit.createAgent(project.id, { name: 'Other', trigger_type: 'reaction', reaction_config })
  const self = await kit.createAgent(project.id, { name: 'Self', trigger_type: 'reaction', reaction_config })
  const shared = { projectId: project.id, agentId: self.id, runId: newId(), reasoning: 'Because.' }
  for (const depth of [2, 8]) {
    const taskId = newId()
    const change = renaming(await create({ name: 'a' }), 'b')
    await inTransaction(pool, (tx) => suggest(tx, { ...shared, taskId, change, depth }))
    assert.equal((await approve(taskId)).status, 200)
  }
  const log = async (id: string) =>
    (await kit.call<{ items: ProcessingEntry[] }>(`GET ${base}/agents/${id}/processing-log`)).body.items
  assert.deepEqual(await log(self.id), [])
  const entries = await log(other.id)
  assert.deepEqual(
    entries.map((entry) => entry.status),
    ['skipped', 'pending'],
  )
  const { rows } = await pool.query('select chain_depth from agent_runs where id = $1', [entries[1]?.run_id])
  assert.deepEqual(rows, [{ chain_depth: 3 }])
})
