// Objects by their key: found by it, created or merged under it, and named where it is taken.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import type { GraphObject, ObjectVersion } from '../../kernel/object.ts'

const kit = await createTestApp()
const { id: projectId } = await kit.createProject()
const { id: otherId } = await kit.createProject('Another')
const member = await kit.createKey(projectId, 'member')
const objects = `/api/projects/${projectId}/objects`

const put = (type: string, key: string, properties: object, path = objects) =>
  kit.call<GraphObject>(`PUT ${path}/by-key`, { token: member.key, body: { type, key, properties } })
const list = async (query: string, path = objects): Promise<string[]> =>
  (await kit.call<{ items: GraphObject[] }>(`GET ${path}?${query}`)).body.items.map(({ id }) => id)
const history = async (id: string) =>
  (await kit.call<{ items: ObjectVersion[] }>(`GET ${objects}/${id}/history`)).body.items.map(({ op }) => op)

test('B9: PUT by key creates an object, merges into it, and changes nothing the third time', async () => {
  const made = await put('Person', 'ada', { name: 'Ada', born: 1815 })
  assert.deepEqual([made.status, made.body.version, made.body.key], [201, 1, 'ada'])
  const merged = await put('Person', 'ada', { born: null, city: 'London' })
  assert.deepEqual([merged.status, merged.body.id, merged.body.version], [200, made.body.id, 2])
  assert.deepEqual(merged.body.properties, { name: 'Ada', born: null, city: 'London' })
  const again = await put('Person', 'ada', { city: 'London' })
  assert.deepEqual([again.status, again.body.version], [200, 2])
  assert.deepEqual(await history(made.body.id), ['update', 'create'])
  const { rows } = await kit.pool.query<{ action: string; actor_id: string }>(
    'select action, actor_id from audit_log where target_id = $1 order by seq',
    [made.body.id],
  )
  assert.deepEqual(rows, [
    { action: 'object.create', actor_id: member.id },
    { action: 'object.update', actor_id: member.id },
  ])
})

test('B9: a key belongs to a type and to a project, and a deleted object gives its key back', async () => {
  const person = await put('Person', 'k', { a: 1 })
  const place = await put('Place', 'k', { a: 1 })
  const theirs = await kit.call<GraphObject>(`PUT /api/projects/${otherId}/objects/by-key`, {
    body: { type: 'Person', key: 'k', properties: { b: 1 } },
  })
  assert.deepEqual([person.status, place.status, theirs.status], [201, 201, 201])
  assert.equal(new Set([person.body.id, place.body.id, theirs.body.id]).size, 3)
  assert.equal((await kit.call(`DELETE ${objects}/${person.body.id}`)).status, 204)
  const anew = await put('Person', 'k', { c: 1 })
  assert.deepEqual([anew.status, anew.body.version, anew.body.properties], [201, 1, { c: 1 }])
  assert.notEqual(anew.body.id, person.body.id)
})

test('B9: of many PUTs of one key at once one creates the object, and no property is lost', async () => {
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) => put('Race', 'one', { [`p${index}`]: index })),
  )
  assert.deepEqual(
    answers.map(({ status }) => status).filter((status) => status !== 200),
    [201],
  )
  assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1)
  const [id = ''] = await list('type=Race&key=one')
  const { body } = await kit.call<GraphObject>(`GET ${objects}/${id}`)
  assert.deepEqual([body.version, Object.keys(body.properties).length], [40, 40])
})

test('B9: PUTs that race with deletions end, and leave one live object at most', async () => {
  await Promise.all(
    Array.from({ length: 30 }, async (_, index) => {
      const { status, body } = await put('Fleeting', 'one', { index })
      assert.ok(status === 200 || status === 201, String(status))
      if (index % 3 === 0) await kit.call(`DELETE ${objects}/${body.id}`)
    }),
  )
  assert.ok((await list('type=Fleeting&key=one')).length <= 1)
})

test('B9: objects are listed by key, with their type or without it', async () => {
  const one = await put('One', 'shared', {})
  const two = await put('Two', 'shared', {})
  await put('Two', 'other', {})
  assert.deepEqual(await list('key=shared'), [two.body.id, one.body.id])
  assert.deepEqual(await list('key=shared&type=One'), [one.body.id])
  assert.deepEqual(await list('key=unknown'), [])
  assert.deepEqual(await list('key=shared', `/api/projects/${otherId}/objects`), [])
  const { body } = await kit.call<{ items: unknown[]; next_cursor: string }>(`GET ${objects}?key=shared&limit=1`)
  assert.deepEqual(await list(`key=shared&cursor=${body.next_cursor}`), [one.body.id])
})

test('B9: a duplicate key is a conflict that carries the id of the object', async () => {
  const { body: object } = await put('Doc', 'readme', {})
  const body = { type: 'Doc', key: 'readme', properties: {} }
  for (const headers of [{}, { 'idempotency-key': 'twice' }]) {
    const { status, body: refused } = await kit.call<{ error: { code: string; details: unknown } }>(`POST ${objects}`, {
      body,
      headers,
    })
    assert.deepEqual([status, refused.error.code, refused.error.details], [409, 'CONFLICT', { id: object.id }])
  }
})

test('B9: an object that is made or merged by key sets reactions off as any change does', async () => {
  const { body: agent } = await kit.call<{ id: string }>(`POST /api/projects/${projectId}/agents`, {
    body: { name: 'reactor', trigger_type: 'reaction', reaction_config: { objectTypes: ['Watched'] } },
  })
  for (const properties of [{ a: 1 }, { a: 2 }, { a: 2 }]) await put('Watched', 'w', properties)
  const { body } = await kit.call<{ items: { event_type: string }[] }>(
    `GET /api/projects/${projectId}/agents/${agent.id}/processing-log`,
  )
  assert.deepEqual(body.items.map(({ event_type }) => event_type).sort(), ['created', 'updated'])
})
