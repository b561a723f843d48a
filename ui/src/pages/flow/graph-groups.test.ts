import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allGroups, foldTasks, groupsAround, type Unit } from './graph-groups.ts'

const task = (id: string, depends_on: string[] = [], parent_id = 'root') => ({ id, depends_on, parent_id })
const many = (count: number, name: string, depends_on: string[] = []) =>
  Array.from({ length: count }, (_, place) => task(`${name} ${place}`, depends_on))
const shapeOf = (units: readonly Unit[]): string[] => units.map(({ kind, ids }) => `${kind} ${ids.length}`)

test('a small flow has a box for each task', () => {
  const units = foldTasks([task('a'), task('b', ['a']), task('c', ['a']), task('d', ['b', 'c'])])
  assert.deepEqual(shapeOf(units), ['task 1', 'task 1', 'task 1', 'task 1'])
  assert.deepEqual(allGroups(units), [])
})

test('many tasks that wait for the same ones are one group, and their neighbours stay boxes', () => {
  const maps = many(500, 'map', ['plan'])
  const units = foldTasks([task('plan'), ...maps, task('end', [maps.at(-1)?.id ?? ''])])
  assert.deepEqual(shapeOf(units), ['task 1', 'beside 500', 'task 1'])
  assert.equal(units[1]?.children.length, 500)
})

test('a group that is too large to be drawn at once opens in parts', () => {
  const units = foldTasks(many(5_000, 'map'))
  assert.deepEqual(shapeOf(units), ['beside 5000'])
  const parts = units[0]?.children ?? []
  assert.deepEqual(new Set(shapeOf(parts)), new Set(['part 100']))
  assert.equal(parts.length, 50)
  assert.deepEqual(groupsAround(units).get('map 4321'), [units[0]?.id, parts[43]?.id])
})

test('many tasks in turn are one group, in their order', () => {
  const chain = Array.from({ length: 700 }, (_, place) => task(`t${place}`, place === 0 ? [] : [`t${place - 1}`]))
  const units = foldTasks(chain)
  assert.deepEqual(shapeOf(units), ['in turn 700'])
  assert.deepEqual(
    units[0]?.ids,
    chain.map(({ id }) => id),
  )
})

test('groups are folded again: a thousand chains are one group of chains', () => {
  const chains = Array.from({ length: 1_000 }, (_, place) => [
    task(`${place} read`, [], `root/${place}`),
    task(`${place} write`, [`${place} read`], `root/${place}`),
  ])
  const units = foldTasks(chains.flat())
  assert.deepEqual(shapeOf(units), ['beside 2000'])
  const chain = units[0]?.children[3]?.children[7]
  assert.deepEqual([chain?.kind, chain?.ids], ['in turn', ['307 read', '307 write']])
})

test('whatever the flow, every task is in exactly one box, and few boxes are at the outside', () => {
  // Each task waits for two others that have nothing in common: no group is natural.
  const tangle = Array.from({ length: 3_000 }, (_, place) =>
    task(`t${place}`, place < 2 ? [] : [`t${(place * 7) % place}`, `t${(place * 13 + 5) % place}`]),
  )
  const units = foldTasks(tangle)
  assert.ok(units.length <= 600, `${units.length} boxes`)
  const all = units.flatMap(({ ids }) => ids)
  assert.equal(all.length, 3_000)
  assert.equal(new Set(all).size, 3_000)
  assert.equal(groupsAround(units).size, 3_000)
  assert.equal(new Set(allGroups(units)).size, allGroups(units).length)
})

test('a group keeps its id while tasks are added', () => {
  const [few, more] = [100, 4_000].map((count) => foldTasks([task('plan'), ...many(count, 'map', ['plan'])]))
  assert.equal(few?.[1]?.id, more?.[1]?.id)
})
