import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTrue } from './is-true.ts'

const verdicts: [value: unknown, isIt: boolean][] = [
  ['true', true],
  ['Yes, it is.', true],
  [' done', true],
  ['not done', false],
  ['yesterday', false],
  ['', false],
  [true, true],
  [1, false],
  [{}, false],
  [false, false],
  [null, false],
  [undefined, false],
]
for (const [value, isIt] of verdicts) {
  test(`${JSON.stringify(value)} ${isIt ? 'holds' : 'does not hold'}, in a loop and in a fork`, () => {
    assert.equal(isTrue(value), isIt)
  })
}
