import assert from 'node:assert/strict'
import { test } from 'node:test'
import { typedMs, typedNumber } from './typed-number.ts'

test('an empty field is null, and a text that is no number never becomes null', () => {
  assert.deepEqual(['', ' ', 0, 5, '5', '-5', '1.5', '-', '.'].map(typedNumber), [
    null,
    null,
    0,
    5,
    5,
    -5,
    1.5,
    '-',
    '.',
  ])
})

test('seconds are milliseconds, and whole ones', () => {
  assert.deepEqual([16.1, '0.0015', '', '-'].map(typedMs), [16_100, 2, null, '-'])
})
