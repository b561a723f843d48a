import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalJson } from './canonical-json.ts'

const same: [unknown, unknown][] = [
  [
    { a: 1, b: 2 },
    { b: 2, a: 1 },
  ],
  [{ a: { c: 1, b: [1, { y: 1, x: 2 }] } }, { a: { b: [1, { x: 2, y: 1 }], c: 1 } }],
  [{ a: 1 }, { a: 1, b: undefined }],
  [1, 1.0],
  [-0, 0],
]
const different: [unknown, unknown][] = [
  [
    [1, 2],
    [2, 1],
  ],
  [{ a: '1' }, { a: 1 }],
  [{ a: null }, {}],
  ['a', ['a']],
  [{}, []],
  [undefined, {}],
]

test('equal values have one text, whatever the order of their keys', () => {
  for (const [a, b] of same) assert.equal(canonicalJson(a), canonicalJson(b))
})

test('different values have different texts', () => {
  for (const [a, b] of different) assert.notEqual(canonicalJson(a), canonicalJson(b))
})
