import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isId, newId } from './id.ts'

test('an id is a UUIDv7 and sorts by its time', () => {
  const ids = [1, 2, 1_000_000_000_000, Date.now(), Date.now() + 1].map((ms) => newId(ms))
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.deepEqual(ids.toSorted(), ids)
})

test('ten thousand ids of one millisecond are all different', () => {
  assert.equal(new Set(Array.from({ length: 10_000 }, () => newId(5))).size, 10_000)
})

test('a text that is not a UUID is not an id', () => {
  for (const text of ['', '1', 'x'.repeat(36), `${newId()} `, newId().replaceAll('-', ''), `{${newId()}}`]) {
    assert.equal(isId(text), false, text)
  }
  assert.ok(isId(newId()))
  assert.ok(isId(newId().toUpperCase()))
})
