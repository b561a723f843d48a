import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pricesFrom, pricesText } from './prices.ts'

test('prices are read as they are written', () => {
  const prices = { 'gpt-5-mini': { input: 0.25, output: 2 }, 'a model': { input: 1, output: 0 } }
  assert.deepEqual(pricesFrom(pricesText(prices)), { prices, problem: null })
  assert.deepEqual(pricesFrom(' \n\n'), { prices: {}, problem: null })
})

test('a line that lacks a price is told', () => {
  for (const line of ['gpt-5-mini 2', 'gpt-5-mini', '1 2', 'x -1 2', 'x 1,5 2']) {
    assert.equal(pricesFrom(`good 1 2\n${line}`).problem, `This line is not a name and two prices: ${line}`)
  }
})
