import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defined } from './defined.ts'

test('a field that is undefined is left out; null, false, 0 and empty texts stay, in their order', () => {
  const fields = defined({ d: null, a: undefined, c: 0, b: '', e: false })
  assert.deepEqual(Object.entries(fields), [
    ['d', null],
    ['c', 0],
    ['b', ''],
    ['e', false],
  ])
})
