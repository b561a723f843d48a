import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { allSeen, eitherSeen, isSeen, readSnapshot, type Seen, seenBefore, wholeNumberOf } from './seen.ts'

const snapshots: [text: string, seen: Seen][] = [
  ['10:10:', { before: 10, except: [] }],
  ['10:15:10,12', { before: 15, except: [10, 12] }],
  ['4294967296:4294967300:4294967296', { before: 4_294_967_300, except: [4_294_967_296] }],
]
for (const [text, seen] of snapshots) {
  test(`the snapshot ${text} is read`, () => assert.deepEqual(readSnapshot(text), seen))
}

const anySeen = fc
  .record({ before: fc.integer({ min: 1, max: 40 }), except: fc.uniqueArray(fc.integer({ min: 1, max: 40 })) })
  .map(({ before, except }) => ({ before, except: except.filter((each) => each < before).toSorted((a, b) => a - b) }))
const transactions = Array.from({ length: 42 }, (_, number) => number)

test('either of two sets is their union', () => {
  fc.assert(
    fc.property(anySeen, anySeen, (one, other) => {
      const both = eitherSeen(one, other)
      for (const each of transactions) assert.equal(isSeen(both, each), isSeen(one, each) || isSeen(other, each))
    }),
  )
})

test('the common part of sets has no transaction that one of them lacks', () => {
  fc.assert(
    fc.property(fc.array(anySeen, { minLength: 1, maxLength: 4 }), (sets) => {
      const common = allSeen(sets)
      for (const each of transactions) {
        if (isSeen(common, each)) assert.ok(sets.every((seen) => isSeen(seen, each)))
      }
    }),
  )
})

test('the common part of one set is that set', () => {
  fc.assert(fc.property(anySeen, (seen) => assert.deepEqual(allSeen([seen]), seen)))
})

test('the part before a transaction has all that was seen before it, and nothing else', () => {
  fc.assert(
    fc.property(anySeen, fc.integer({ min: 1, max: 41 }), (seen, end) => {
      const part = seenBefore(seen, end)
      for (const each of transactions) assert.equal(isSeen(part, each), isSeen(seen, each) && each < end)
    }),
  )
})

const numbers: [low: number, before: number, whole: number][] = [
  [99, 100, 99],
  [2 ** 32 - 1, 2 ** 32 + 5, 2 ** 32 - 1],
  [3, 2 ** 32 + 5, 2 ** 32 + 3],
  [2 ** 32 - 2, 3 * 2 ** 32 + 1, 3 * 2 ** 32 - 2],
]
for (const [low, before, whole] of numbers) {
  test(`the low bits ${low} before ${before} are of transaction ${whole}`, () =>
    assert.equal(wholeNumberOf(low, { before, except: [] }), whole))
}
