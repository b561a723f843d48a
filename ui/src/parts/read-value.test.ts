import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readValue, wordsOf } from './read-value.ts'

test('a text stays a text, and a text that is JSON as a whole is read as the value', () => {
  assert.deepEqual(readValue('**Bold** {x}'), { type: 'text', text: '**Bold** {x}' })
  assert.deepEqual(readValue('[link](https://example.com)'), { type: 'text', text: '[link](https://example.com)' })
  assert.deepEqual(readValue(' {"a": 1}'), { type: 'pairs', pairs: [['a', 1]] })
  assert.deepEqual(readValue('12'), { type: 'text', text: '12' })
})

test('objects are names with values, lists are lists, and empty ones say so', () => {
  assert.deepEqual(readValue({ summary: 'Done.', parts: [] }), {
    type: 'pairs',
    pairs: [
      ['summary', 'Done.'],
      ['parts', []],
    ],
  })
  assert.deepEqual(readValue([1, 2]), { type: 'list', items: [1, 2] })
  assert.deepEqual([[], {}, null, true, 0].map(readValue), [
    { type: 'plain', text: 'none' },
    { type: 'plain', text: 'nothing' },
    { type: 'plain', text: '–' },
    { type: 'plain', text: 'yes' },
    { type: 'plain', text: '0' },
  ])
})

test('a name is written in words', () => {
  assert.deepEqual(['expected_duration', 'a b', '_'].map(wordsOf), ['expected duration', 'a b', '_'])
})
