import assert from 'node:assert/strict'
import { test } from 'node:test'
import { steadyOrder } from './steady-order.ts'

test('rows that are pointed at keep their places, and new ones come last', () => {
  assert.deepEqual(steadyOrder(['a', 'b'], ['c', 'b']), ['a', 'b', 'c'])
  const shown = ['a', 'b']
  assert.equal(steadyOrder(shown, ['b', 'a']), shown)
})
