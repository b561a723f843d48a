import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cost, duration, fieldsLine, oneLine, tokens } from './figures.ts'

test('the fields of an object are named in one line, and a long line is cut', () => {
  assert.equal(fieldsLine({ topic: 'rain', lines: 2, deep: { a: 1 } }), 'topic: rain, lines: 2, deep: {"a":1}')
  assert.equal(fieldsLine('two\n lines'), 'two lines')
  assert.equal(fieldsLine([1, 2]), '[1,2]')
  assert.equal(fieldsLine({}), '')
  assert.equal(fieldsLine({ topic: 'x'.repeat(100) }, 10), 'topic: xx…')
})

test('figures at the edge of their unit stay within it', () => {
  const durations: [number, string][] = [
    [0.4, '0 ms'],
    [999.7, '999 ms'],
    [1_000, '1.0s'],
    [9_960, '9.9s'],
    [10_000, '10s'],
    [59_999, '59s'],
    [111_000, '1m 51s'],
    [7_500_000, '2h 5m'],
  ]
  for (const [ms, text] of durations) assert.equal(duration(ms), text)
  const counts: [number, string][] = [
    [812, '812'],
    [3_740, '3.7k'],
    [99_960, '100k'],
    [999_499, '999k'],
    [999_999, '1.00M'],
  ]
  for (const [count, text] of counts) assert.equal(tokens(count), text)
  const prices: [number | null, string][] = [
    [null, '–'],
    [0, '$0'],
    [4.2e-7, '< $0.000001'],
    [0.0042, '$0.0042'],
    [11.588, '$11.59'],
  ]
  for (const [usd, text] of prices) assert.equal(cost(usd), text)
})

test('a text is not cut within a character', () => {
  assert.equal(oneLine('a😀b', 3), 'a…')
  assert.equal(oneLine('a😀b', 4), 'a😀b')
})
