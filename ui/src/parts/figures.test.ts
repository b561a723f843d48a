import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldsLine } from './figures.ts'

test('the fields of an object are named in one line, and a long line is cut', () => {
  assert.equal(fieldsLine({ topic: 'rain', lines: 2, deep: { a: 1 } }), 'topic: rain, lines: 2, deep: {"a":1}')
  assert.equal(fieldsLine('two\n lines'), 'two lines')
  assert.equal(fieldsLine([1, 2]), '[1,2]')
  assert.equal(fieldsLine({}), '')
  assert.equal(fieldsLine({ topic: 'x'.repeat(100) }, 10), 'topic: xx…')
})
