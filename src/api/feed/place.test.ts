import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MusterError } from '../../kernel/errors.ts'
import { type FeedPlace, holds, idOf, readId } from './place.ts'

const place: FeedPlace = {
  database: '0a1b2c3d',
  at: 1_760_000_000_000,
  seen: { before: 2 ** 40, except: [77, 2 ** 40 - 1] },
}

test('an id is read as the place that it was made of', () => assert.deepEqual(readId(idOf(place)), place))

test('an id of many open transactions stays short, and passes over none of them', () => {
  const open = Array.from({ length: 5_000 }, (_, index) => 1_000 + index)
  const id = idOf({ ...place, seen: { before: 9_999, except: open } })
  assert.ok(id.length < 50, id)
  assert.deepEqual(readId(id).seen, { before: 1_000, except: [] })
})

for (const wrong of [
  '',
  '1',
  'x',
  '0a1b2c3d',
  '0a1b2c3d-1',
  '0A1B2C3D-1-1',
  '0a1b2c3d-1-',
  '0a1b2c3d-1-é',
  '0a1b2c3d-1 -1',
]) {
  test(`${JSON.stringify(wrong)} is no id`, () =>
    assert.throws(
      () => readId(wrong),
      (error) => error instanceof MusterError && error.code === 'INVALID_REQUEST',
    ))
}

test('numbers of transactions that cannot be are left out', () => {
  assert.deepEqual(readId('0a1b2c3d-1-5-0-1-1-5-z').seen, { before: 5, except: [4] })
})

const later = (minutes: number): FeedPlace => ({
  ...place,
  at: place.at + minutes * 60_000,
  seen: { before: 2 ** 41, except: [] },
})
const ends: [name: string, now: FeedPlace, holds: boolean][] = [
  ['an id of the same moment holds', place, true],
  ['an id holds for five minutes', later(5), true],
  ['an id of six minutes ago does not hold', later(6), false],
  ['an id of another database does not hold', { ...later(1), database: 'ffffffff' }, false],
  ['an id from the future of the database does not hold', { ...place, seen: { before: 5, except: [] } }, false],
]
for (const [name, now, expected] of ends) test(name, () => assert.equal(holds(place, now), expected))
