import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asManyAsFit } from './as-many-as-fit.ts'

for (const { name, sizes, fit } of [
  { name: 'none of none', sizes: [], fit: 0 },
  { name: 'all that are just the limit together', sizes: [4, 6], fit: 2 },
  { name: 'the first ones', sizes: [4, 6, 1], fit: 2 },
  { name: 'one that is too large by itself', sizes: [11, 1], fit: 1 },
]) {
  test(`as many as fit: ${name}`, () => {
    assert.deepEqual(
      asManyAsFit(sizes, (size) => size, 10),
      sizes.slice(0, fit),
    )
  })
}
