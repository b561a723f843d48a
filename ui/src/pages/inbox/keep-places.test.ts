import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Task } from '../../../../src/kernel/task.ts'
import { idFrom, inOrder, keepPlaces, nextOpen } from './keep-places.ts'

const task = (id: string, fields: Partial<Task> = {}): Task => ({
  id,
  kind: 'suggestion',
  title: id,
  description: '',
  priority: 'medium',
  status: 'pending',
  assigned_to: null,
  created_by: { type: 'agent', id: null },
  parent_task_id: null,
  result: null,
  error_message: null,
  changes: null,
  reasoning: null,
  run_id: null,
  progress: { done: 0, total: 1, note: null },
  metadata: {},
  created_at: '2026-01-01T00:00:00.000Z',
  completed_at: null,
  ...fields,
})

const ids = (tasks: Task[]): string[] => tasks.map(({ id }) => id)

test('urgent things come first, then the newest', () => {
  const tasks = [
    task('old', { created_at: '2026-01-01T00:00:00.000Z' }),
    task('new', { created_at: '2026-01-02T00:00:00.000Z' }),
    task('urgent', { priority: 'urgent', created_at: '2025-01-01T00:00:00.000Z' }),
  ]
  assert.deepEqual(ids(inOrder(tasks)), ['urgent', 'new', 'old'])
})

test('a thing that waits no more keeps its place, and a new one comes behind the others', () => {
  const shown = [task('a'), task('b'), task('c')]
  const waiting = [task('new', { priority: 'urgent' }), task('c', { metadata: { stale: true } }), task('a')]
  const kept = keepPlaces(shown, waiting)
  assert.deepEqual(ids(kept), ['a', 'b', 'c', 'new'])
  assert.equal(kept[2]?.metadata.stale, true)
})

test('moving stops at both ends and begins with the first', () => {
  const all = ['a', 'b', 'c']
  assert.equal(idFrom(all, null, 1), 'a')
  assert.equal(idFrom(all, 'a', 1), 'b')
  assert.equal(idFrom(all, 'c', 1), 'c')
  assert.equal(idFrom(all, 'a', -1), 'a')
  assert.equal(idFrom([], 'a', 1), null)
})

test('after a decision the next open thing follows, at the end the one before', () => {
  const open = (...some: string[]) => {
    const set = new Set(some)
    return (id: string) => set.has(id)
  }
  assert.equal(nextOpen(['a', 'b', 'c'], 'a', open('c')), 'c')
  assert.equal(nextOpen(['a', 'b', 'c'], 'c', open('a', 'b')), 'b')
  assert.equal(nextOpen(['a'], 'a', open()), null)
})
