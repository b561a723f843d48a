import assert from 'node:assert/strict'
import { test } from 'node:test'
import { putNewest } from './put-newest.ts'

test('the oldest goes, and what was put in again is no longer the oldest', () => {
  const kept = new Map<string, number>()
  for (const [place, key] of ['a', 'b', 'c', 'a', 'd', 'e'].entries()) putNewest(kept, key, place, 3)
  assert.deepEqual(Object.fromEntries(kept), { a: 3, d: 4, e: 5 })
})
