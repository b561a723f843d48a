import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Relationship } from '../../../../src/kernel/object.ts'
import { around, MOST_NODES, placesOf } from './graph-layout.ts'

const relate = (from_id: string, to_id: string, id = `${from_id}${to_id}`): Relationship =>
  ({ id, from_id, to_id, type: 'knows' }) as Relationship // the fields that are read

test('an object without relationships stands alone', () => {
  assert.deepEqual(around('a', []), { ids: ['a'], edges: [], leftOut: 0 })
})

test('a relationship that both ends tell of is drawn once', () => {
  const { ids, edges } = around('a', [relate('a', 'b'), relate('b', 'c'), relate('a', 'b')])
  assert.deepEqual([ids, edges.length], [['a', 'b', 'c'], 2])
})

test('the nearest are kept, and edges to those that are left out are not drawn', () => {
  const far = Array.from({ length: 30 }, (_, place) => relate('b', `far ${place}`))
  const near = Array.from({ length: 30 }, (_, place) => relate('a', `near ${place}`))
  const { ids, edges, leftOut } = around('a', [...far, relate('a', 'b'), ...near])
  assert.equal(ids.length, MOST_NODES)
  assert.equal(leftOut, 62 - MOST_NODES)
  assert.ok(near.every(({ to_id }) => ids.includes(to_id)))
  assert.ok(edges.every(({ from_id, to_id }) => ids.includes(from_id) && ids.includes(to_id)))
})

test('what a relationship leads to stands to the right, and no two stand on each other', () => {
  const graph = around('a', [relate('a', 'b'), relate('a', 'c'), relate('a', 'a'), relate('b', 'c', 'other')])
  const places = placesOf(graph)
  assert.ok((places.get('b')?.x ?? 0) > (places.get('a')?.x ?? 0))
  assert.equal(new Set([...places.values()].map(({ x, y }) => `${x} ${y}`)).size, 3)
})
