import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pairsFrom } from './pairs.ts'

test('a value may hold the separator, and blank lines do not count', () => {
  assert.deepEqual(pairsFrom('Authorization: Bearer a:b\n\n X-Other:c ', ':').pairs, {
    Authorization: 'Bearer a:b',
    'X-Other': 'c',
  })
  assert.deepEqual(pairsFrom('KEY=a=b', '=').pairs, { KEY: 'a=b' })
})

test('a line without a name or a separator is told', () => {
  for (const line of ['no separator', '=value']) {
    assert.equal(pairsFrom(line, '=').problem, `This line is not a name, “=” and a value: ${line}`)
  }
})
