import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GraphObject } from '../../../../src/kernel/object.ts'
import type { Task } from '../../../../src/kernel/task.ts'
import { changesBetween, columnsOf, objectName, touches } from './object-words.ts'

const ID = '0199a6f0-5f3e-7c1a-9d52-8f6b1e2c3d4e'

test('an object is called by its key, else its name or title, else the end of its id', () => {
  assert.equal(objectName({ id: ID, key: 'K-1', properties: { name: 'Ada' } }), 'K-1')
  assert.equal(objectName({ id: ID, key: null, properties: { name: ' ', title: 'Mail' } }), 'Mail')
  assert.equal(objectName({ id: ID, key: null, properties: { name: 7 } }), '1e2c3d4e')
})

test('the columns are the most frequent properties', () => {
  const of = (properties: GraphObject['properties']) => ({ properties }) as GraphObject // the field that is read
  assert.deepEqual(columnsOf([of({ a: 1, b: 1 }), of({ b: 2, c: 1 }), of({ b: 1, c: 1 })]), ['b', 'c', 'a'])
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, place) => [`p${place}`, 1]))
  assert.equal(columnsOf([of(many)]).length, 6)
})

test('a version tells what it added, removed and changed', () => {
  assert.deepEqual(
    changesBetween({ a: 1, b: [1], c: 1 }, { a: 2, b: [1], d: null }).map(({ name, kind }) => [name, kind]),
    [
      ['a', 'changed'],
      ['c', 'removed'],
      ['d', 'added'],
    ],
  )
  assert.deepEqual(
    changesBetween(null, { a: 1 }).map(({ name, kind }) => [name, kind]),
    [['a', 'added']],
  )
})

test('a suggestion touches the object that it changes, and both that it relates', () => {
  const task = (change: object) => ({ changes: [{ object_id: null, after: null, ...change }] }) as unknown as Task
  assert.ok(touches(task({ object_id: ID }), ID))
  assert.ok(touches(task({ op: 'relate', after: { to_id: ID } }), ID))
  assert.ok(!touches(task({ object_id: 'other' }), ID))
  assert.ok(!touches(task({ op: 'update', object_id: 'other', after: { to_id: ID } }), ID))
})
