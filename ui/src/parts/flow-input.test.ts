import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inputOf, textOf } from './flow-input.ts'

test('an input is nothing, JSON, or a text', () => {
  assert.deepEqual(inputOf('  '), {})
  assert.deepEqual(inputOf('{"a": [1]}'), { input: { a: [1] } })
  assert.deepEqual(inputOf('null'), { input: null })
  assert.deepEqual(inputOf('two lines about rain'), { input: 'two lines about rain' })
})

test('a text that begins like JSON and is none is refused, with the place', () => {
  for (const text of ['{', ' [1, 2', '"open']) assert.ok('problem' in inputOf(text), text)
  assert.deepEqual(inputOf('{"a":\n 1,}'), {
    problem: 'Line 2, column 4: Expected a name in quotation marks, found "}".',
  })
})

test('an input that is shown as a text is read back as it was', () => {
  for (const input of ['Bake.', '12', 'true', '{"a": 1}', '"quoted"', '[oh', ' ', '', 7, { a: [1] }, ['x'], false]) {
    assert.deepEqual(inputOf(textOf(input)), { input })
  }
  assert.deepEqual(inputOf(textOf(null)), {})
})
