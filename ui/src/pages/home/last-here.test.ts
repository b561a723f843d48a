import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noteVisit, readVisits } from './last-here.ts'

const HOUR = 3_600_000
const now = 1_800_000_000_000

test('the first visit looks back a day', () => {
  assert.deepEqual(noteVisit(null, now), { since: now - 24 * HOUR, last: now, isFirst: true })
})

test('a visit goes on over a short pause, and a longer one begins the next', () => {
  const first = noteVisit(null, now)
  const soon = noteVisit(first, now + HOUR / 4)
  assert.deepEqual(soon, { since: first.since, last: now + HOUR / 4, isFirst: true })
  const next = noteVisit(soon, now + 5 * HOUR)
  assert.deepEqual(next, { since: now + HOUR / 4, last: now + 5 * HOUR, isFirst: false })
  assert.equal(noteVisit(next, now + 5.1 * HOUR).isFirst, false)
})

test('a visit in the future, and a text that is none of ours, count as no visit', () => {
  assert.equal(noteVisit({ since: now, last: now + HOUR, isFirst: false }, now).since, now - 24 * HOUR)
  for (const text of [null, 'x', '7', '{"since":"a","last":1}', '[]']) assert.equal(readVisits(text), null)
  assert.deepEqual(readVisits('{"since":1,"last":2}'), { since: 1, last: 2, isFirst: false })
  assert.deepEqual(readVisits('{"since":1,"last":2,"isFirst":true}'), { since: 1, last: 2, isFirst: true })
})
