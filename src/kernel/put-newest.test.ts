import assert from 'node:assert/strict'
import { test } from 'node:test'
import { putNewest } from './put-newest.ts'

test('the oldest entry goes, and an entry that was put in again is no longer the oldest', () => {
  const kept = new Map<string, number>()
  for (const [place, key] of ['a', 'b', 'c', 'a', 'd', 'e'].entries()) putNewest(kept, key, place, 3)
  assert.deepEqual(Object.fromEntries(kept), { a: 3, d: 4, e: 5 })
})

test('a full cache drops its oldest sixteenth at a time and never exceeds its bound', () => {
  const kept = new Map<number, true>()
  for (let key = 1; key <= 32; key++) putNewest(kept, key, true, 32)
  assert.equal(kept.size, 32)
  putNewest(kept, 33, true, 32)
  assert.deepEqual([...kept.keys()].slice(0, 2), [4, 5])
  assert.equal(kept.size, 30)
})
