import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { nothingSetOff } from '../../test/kit/nothing-set-off.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { newId } from '../kernel/id.ts'
import type { GraphObject } from '../kernel/object.ts'
import type { Actor } from '../kernel/principal.ts'
import { byAgent, byPerson } from './author.ts'
import { listObjectVersions } from './history.ts'
import { getObject, listObjects } from './objects.ts'
import { createObjectWriter, type ObjectChange, type WriteOutcome } from './write-objects.ts'

const { pool, clock } = await createTestDatabase()
const projectId = await insertProject(pool)
const writer = createObjectWriter({ pool, setsOff: nothingSetOff })
const person: Actor = { type: 'user', id: newId(), requestId: 'r-1', address: '127.0.0.1' }

const write = (change: ObjectChange, author = byPerson(person), project = projectId) =>
  writer.write({ projectId: project, change, author })
const create = async (type: string, properties: Record<string, unknown>, key: string | null = null) =>
  objectOf(await write({ op: 'create', type, key, properties }))
const update = (id: string, properties: Record<string, unknown>, expectedVersion: number | null = null) =>
  write({ op: 'update', id, properties, expectedVersion })
const remove = (id: string, expectedVersion: number | null = null) => write({ op: 'delete', id, expectedVersion })

function objectOf(outcome: WriteOutcome): GraphObject {
  assert.equal(outcome.kind, 'written')
  return outcome.kind === 'written' ? outcome.object : assert.fail()
}

test('an object begins at version 1 with its author, a history entry and an audit entry', async () => {
  const object = await create('Person', { name: 'Ada' }, 'ada')
  assert.equal(object.version, 1)
  assert.deepEqual([object.actor_type, object.actor_id], ['user', person.id])
  assert.deepEqual(await getObject(pool, projectId, object.id), object)
  const { items } = await listObjectVersions(pool, object.id, { limit: 10 })
  assert.deepEqual(
    items.map(({ version, op, properties, run_id, approved_by }) => ({ version, op, properties, run_id, approved_by })),
    [{ version: 1, op: 'create', properties: { name: 'Ada' }, run_id: null, approved_by: null }],
  )
  const { rows } = await pool.query('select action, actor_id, details from audit_log where target_id = $1', [object.id])
  assert.deepEqual(rows, [
    { action: 'object.create', actor_id: person.id, details: { type: 'Person', key: 'ada', version: 1 } },
  ])
})

test('an update merges by name, raises the version and keeps every version as it was', async () => {
  const { id } = await create('Person', { name: 'Bob', born: 1950, address: { city: 'Bonn', zip: 1 } })
  const agentId = newId()
  const runId = newId()
  const changed = await write(
    { op: 'update', id, properties: { born: null, address: { city: 'Ulm' } }, expectedVersion: 1 },
    byAgent(agentId, { runId, depth: 1, approver: person }),
  )
  const object = objectOf(changed)
  assert.deepEqual(object.properties, { name: 'Bob', born: null, address: { city: 'Ulm' } })
  assert.deepEqual([object.version, object.actor_type, object.actor_id], [2, 'agent', agentId])
  const { items } = await listObjectVersions(pool, id, { limit: 10 })
  assert.deepEqual(
    items.map(({ version, op, run_id, approved_by }) => [version, op, run_id, approved_by]),
    [
      [2, 'update', runId, person.id],
      [1, 'create', null, null],
    ],
  )
  assert.deepEqual(items[1]?.properties, { name: 'Bob', born: 1950, address: { city: 'Bonn', zip: 1 } })
})

test('an update that changes nothing keeps the version and leaves no trace', async () => {
  const { id } = await create('Person', { name: 'Cy', tags: ['a', { b: 1, c: 2 }] })
  const same = await update(id, { tags: ['a', { c: 2, b: 1 }] })
  assert.equal(same.kind, 'unchanged')
  assert.equal((await listObjectVersions(pool, id, { limit: 10 })).items.length, 1)
  const { rowCount } = await pool.query('select from audit_log where target_id = $1', [id])
  assert.equal(rowCount, 1)
})

test('an update that expects another version is told the present one, and nothing is written', async () => {
  const { id } = await create('Person', { name: 'Di' })
  await update(id, { name: 'Dee' })
  assert.deepEqual(await update(id, { name: 'Do' }, 1), { kind: 'moved', version: 2 })
  assert.deepEqual(await remove(id, 7), { kind: 'moved', version: 2 })
  assert.equal((await getObject(pool, projectId, id)).properties.name, 'Dee')
})

test('a deleted object is a version of its own, leaves the lists and takes no change', async () => {
  const { id } = await create('Gone', { name: 'Ed' }, 'ed')
  const object = objectOf(await remove(id))
  assert.equal(object.version, 2)
  assert.notEqual(object.deleted_at, null)
  assert.deepEqual(await update(id, { name: 'Eve' }), { kind: 'missing' })
  assert.deepEqual(await remove(id), { kind: 'missing' })
  assert.deepEqual((await listObjects(pool, projectId, { type: 'Gone' }, { limit: 10 })).items, [])
  const { items } = await listObjectVersions(pool, id, { limit: 10 })
  assert.deepEqual(
    items.map(({ version, op, properties }) => [version, op, properties]),
    [
      [2, 'delete', { name: 'Ed' }],
      [1, 'create', { name: 'Ed' }],
    ],
  )
})

test('type and key are unique among live objects, and free again after a delete', async () => {
  const first = await create('Unique', {}, 'k')
  const again = await write({ op: 'create', type: 'Unique', key: 'k', properties: {} })
  assert.deepEqual(again, { kind: 'taken', id: first.id })
  await create('Other', {}, 'k')
  await create('Unique', {})
  await create('Unique', {})
  await remove(first.id)
  await create('Unique', {}, 'k')
})

test("another project's object is missing", async () => {
  const other = await insertProject(pool)
  const { id } = await create('Person', {})
  const change = { op: 'update', id, properties: { a: 1 }, expectedVersion: null } as const
  assert.deepEqual(await write(change, byPerson(person), other), { kind: 'missing' })
})

test('each of 30 concurrent changes of one object is applied to the result of the change before', async () => {
  const { id } = await create('Busy', {})
  const outcomes = await Promise.all(Array.from({ length: 30 }, (_, index) => update(id, { [`field${index}`]: index })))
  assert.ok(outcomes.every((outcome) => outcome.kind === 'written'))
  const object = await getObject(pool, projectId, id)
  assert.equal(object.version, 31)
  assert.equal(Object.keys(object.properties).length, 30)
  const { items } = await listObjectVersions(pool, id, { limit: 100 })
  assert.deepEqual(
    items.map((item) => Object.keys(item.properties).length),
    Array.from({ length: 31 }, (_, index) => 30 - index),
  )
})

test('with 30 concurrent changes of one object and its deletion no version is older than the one before', async () => {
  const { id } = await create('Busy', {})
  await Promise.all(Array.from({ length: 30 }, (_, index) => update(id, { [`field${index}`]: index })))
  const last = await getObject(pool, projectId, id)
  assert.equal((await listObjectVersions(pool, id, { limit: 1 })).items[0]?.at, last.updated_at)
  const gone = objectOf(await remove(id))
  const { rows } = await pool.query<{ version: number }>(
    `select version from object_versions where object_id = $1 order by at, version`,
    [id],
  )
  assert.deepEqual(
    rows.map((row) => row.version),
    Array.from({ length: 32 }, (_, index) => index + 1),
  )
  assert.equal((await listObjectVersions(pool, id, { limit: 1 })).items[0]?.at, gone.deleted_at)
  assert.equal(gone.updated_at, gone.deleted_at)
})

test('a version written after the clock was set back has the same instant as the version before', async () => {
  const { id } = await create('Clock', {})
  await clock.advance(60_000)
  const later = objectOf(await update(id, { a: 1 }))
  await clock.advance(-60_000)
  assert.equal(objectOf(await update(id, { a: 2 })).updated_at, later.updated_at)
  const { items } = await listObjectVersions(pool, id, { limit: 2 })
  assert.deepEqual(
    items.map((item) => item.at),
    [later.updated_at, later.updated_at],
  )
})

test('the search finds words and their beginnings in key and properties, newest first', async () => {
  const project = await insertProject(pool)
  const make = async (key: string | null, properties: Record<string, unknown>, type = 'Note') =>
    objectOf(await write({ op: 'create', type, key, properties }, byPerson(person), project)).id
  const letter = await make('order-17', { text: 'Dear Ada,\nthe order of ada@example.com is late.' })
  const deep = await make(null, { a: [{ b: 'Straße' }, { c: 1234 }], d: 'Nice 🦊 at 東京タワー' }, 'Deep')
  const found = async (q: string, type?: string) =>
    (await listObjects(pool, project, { q, type }, { limit: 10 })).items.map((item) => item.id)
  for (const q of ['ada', 'ADA order', 'example', '17', 'order-17', 'the', 'lat']) {
    assert.deepEqual(await found(q), [letter], q)
  }
  for (const q of ['straße', 'STRASSE', 'stra', '123', '1234 str', '🦊', 'タワー', '京'])
    assert.deepEqual(await found(q), [deep], q)
  for (const q of ['ada missing', 'dear bob', '!!!', "' & 'x", 'text']) assert.deepEqual(await found(q), [], q)
  assert.deepEqual(await found('ada', 'Deep'), [])
  assert.deepEqual(await found('straße', 'Deep'), [deep])
})

test('a changed word is found; the word that was replaced is not', async () => {
  const { id } = await create('Word', { text: 'beforehand' })
  await update(id, { text: 'afterwards' })
  const find = (q: string) => listObjects(pool, projectId, { q }, { limit: 10 })
  assert.equal((await find('beforehand')).items.length, 0)
  assert.equal((await find('afterwards')).items.length, 1)
})

test('pages of a history neither repeat nor miss a version', async () => {
  const { id } = await create('Paged', {})
  for (let index = 0; index < 5; index++) await update(id, { index })
  const versions: number[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await listObjectVersions(pool, id, { limit: 2, cursor })
    versions.push(...page.items.map((item) => item.version))
    if (page.next_cursor === null) break
    cursor = page.next_cursor
  }
  assert.deepEqual(versions, [6, 5, 4, 3, 2, 1])
})

test('with the project go its objects, their versions and their edges', async () => {
  const project = await insertProject(pool)
  const made = await write({ op: 'create', type: 'A', key: null, properties: {} }, byPerson(person), project)
  const { id } = objectOf(made)
  await pool.query('delete from projects where id = $1', [project])
  const { rowCount } = await pool.query('select from object_versions where object_id = $1', [id])
  assert.equal(rowCount, 0)
})

test('an object holds a mebibyte of properties and no more', async () => {
  const half = 'x'.repeat(600_000)
  const { id } = await create('Large', { one: half })
  assert.deepEqual(await update(id, { two: half }), { kind: 'too_large' })
  assert.equal((await getObject(pool, projectId, id)).version, 1)
  assert.equal((await update(id, { one: 'short', two: half })).kind, 'written')
})

test('pages of large objects and versions end early, and together hold all of them', async () => {
  const project = await insertProject(pool)
  const text = 'y'.repeat(900_000)
  for (let index = 0; index < 12; index++) {
    await write({ op: 'create', type: 'Large', key: null, properties: { text, index } }, byPerson(person), project)
  }
  const sizes: number[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await listObjects(pool, project, {}, { limit: 200, cursor })
    sizes.push(page.items.length)
    if (page.next_cursor === null) break
    cursor = page.next_cursor
  }
  assert.equal(
    sizes.reduce((all, each) => all + each, 0),
    12,
  )
  const { id } = await create('Large', { text })
  for (let index = 0; index < 25; index++) await update(id, { index })
  const first = await listObjectVersions(pool, id, { limit: 200 })
  assert.ok(first.items.length < 26 && first.next_cursor !== null, String(first.items.length))
  const rest = await listObjectVersions(pool, id, { limit: 200, cursor: first.next_cursor ?? '' })
  assert.equal(first.items.length + rest.items.length, 26)
})
