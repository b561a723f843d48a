import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readInput } from './read-input.ts'

test('a text is taken as it is, also where it looks like JSON', () => {
  assert.deepEqual(readInput('{"a": 1}', 'text'), { input: '{"a": 1}' })
  assert.deepEqual(readInput('', 'text'), { input: '' })
})

test('JSON is an object, or the reason why not', () => {
  assert.deepEqual(readInput('{"a": 1}', 'json'), { input: { a: 1 } })
  for (const text of ['[]', '1', 'null', '"a"']) assert.ok('problem' in readInput(text, 'json'), text)
  const broken = readInput('{', 'json')
  assert.match('problem' in broken ? broken.problem : '', /^This is no JSON: /)
})
