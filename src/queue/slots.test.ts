import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSlots, keptOf } from './slots.ts'

const kept: [count: number, kept: number][] = [
  [0, 0],
  [1, 0],
  [3, 0],
  [4, 1],
  [9, 1],
  [10, 2],
  [50, 10],
  [500, 100],
]
for (const [count, expected] of kept) {
  test(`of ${count} slots ${expected} are kept`, () => assert.equal(keptOf(count), expected))
}

test('one project alone leaves the kept slots free', () => {
  const slots = createSlots(50)
  assert.equal(slots.roomFor('hog'), 40)
  for (let index = 0; index < 40; index++) slots.take('hog')
  assert.equal(slots.hasRoomFor('hog'), false)
  assert.equal(slots.hasRoomFor('newcomer'), true)
  slots.release('hog')
  assert.equal(slots.roomFor('hog'), 1)
})

test('a newcomer leaves the next newcomer as many kept slots as it takes', () => {
  const slots = createSlots(50)
  for (let index = 0; index < 45; index++) slots.take('hog')
  const taken: number[] = []
  for (const name of ['first', 'second', 'third']) {
    const room = slots.roomFor(name)
    for (let index = 0; index < room; index++) slots.take(name)
    taken.push(room)
  }
  assert.deepEqual(taken, [3, 1, 1])
  assert.equal(slots.free(), 0)
})

test('a process with few slots keeps none', () => {
  const slots = createSlots(1)
  assert.equal(slots.roomFor('any'), 1)
  slots.take('any')
  assert.equal(slots.hasRoomFor('other'), false)
  slots.release('any')
  assert.deepEqual(slots.underWay(), { projectIds: [], counts: [] })
})

test('the room of a project is the number of slots that it may take one after the other', () => {
  for (let count = 0; count <= 24; count++) {
    for (let others = 0; others <= count; others++) {
      for (let own = 0; own <= count - others; own++) {
        const slots = createSlots(count)
        for (let index = 0; index < others; index++) slots.take('others')
        for (let index = 0; index < own; index++) slots.take('own')
        const room = slots.roomFor('own')
        let taken = 0
        for (; slots.hasRoomFor('own'); taken++) slots.take('own')
        assert.equal(room, taken, `${count} slots, ${others} of others, ${own} of its own`)
      }
    }
  }
})
