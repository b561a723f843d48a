import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createProjectSchedule } from './project-schedule.ts'

function scheduleAt() {
  const clock = { now: 1_000 }
  return { clock, schedule: createProjectSchedule(() => clock.now) }
}

test('a project is due once, at the earliest requested time', () => {
  const { clock, schedule } = scheduleAt()
  schedule.searchIn(10_000)
  schedule.lookIn('a', 500)
  schedule.lookIn('b', 30)
  schedule.lookIn('a', 100)
  schedule.lookIn('a', 700)
  assert.deepEqual([[...schedule.due()], schedule.waitMs()], [[], 30])
  clock.now += 100
  assert.deepEqual([...schedule.due()], ['a', 'b'])
  assert.deepEqual([[...schedule.due()], schedule.waitMs()], [[], 9_900])
})

test('a project that is requested again during its turn is due again; a project that had no turn stays due', () => {
  const { schedule } = scheduleAt()
  for (const id of ['a', 'b', 'c']) schedule.lookIn(id, 0)
  for (const id of schedule.due()) {
    schedule.lookIn(id, 0)
    if (id === 'b') break
  }
  assert.deepEqual(new Set(schedule.due()), new Set(['a', 'b', 'c']))
})

test('the first search is due at once, and a planned search may be moved to an earlier time only', () => {
  const { clock, schedule } = scheduleAt()
  assert.ok(schedule.isSearchDue())
  schedule.searchIn(30_000)
  assert.deepEqual([schedule.isSearchDue(), schedule.waitMs()], [false, 30_000])
  schedule.searchWithin(2_000)
  schedule.searchWithin(5_000)
  assert.equal(schedule.waitMs(), 2_000)
  clock.now += 2_000
  assert.deepEqual([schedule.isSearchDue(), schedule.waitMs()], [true, 0])
})
