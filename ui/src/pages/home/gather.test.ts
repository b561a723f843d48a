import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counted, sumDays, usedShare } from './gather.ts'

test('a count that was cut says so', () => {
  assert.deepEqual([counted({ count: 20, has_more: true }), counted({ count: 7, has_more: false })], ['20+', '7'])
})

test('amounts are added over the projects that have them', () => {
  const spent = (total_tokens: number, cost_usd: number | null) => ({ total_tokens, cost_usd })
  const days = [
    { today: spent(5, null), yesterday: spent(1, null) },
    { today: spent(7, 0.5), yesterday: spent(2, null) },
  ]
  assert.deepEqual(sumDays([null, null]), null)
  assert.deepEqual(sumDays([null, ...days]), { today: spent(12, 0.5), yesterday: spent(3, null) })
})

test('the share of used tokens is rounded down, and 0 for an agent without a limit', () => {
  const share = (token_used: number, token_allocation: number | null) => usedShare({ token_used, token_allocation })
  assert.deepEqual([share(90, 100), share(999, 1_000), share(5, null), share(0, 0)], [90, 99, 0, 0])
})
