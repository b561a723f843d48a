import assert from 'node:assert/strict'
import { test } from 'node:test'
import { budgetTone } from './budget-tone.ts'

for (const [used, allocation, tone, share] of [
  [5, null, 'running', 0],
  [0, 0, 'failed', 100],
  [899, 1_000, 'running', 89.9],
  [900, 1_000, 'blocked', 90],
  [949, 1_000, 'blocked', 94.9],
  [950, 1_000, 'failed', 95],
  [1_200, 1_000, 'failed', 120],
] as const) {
  test(`${used} of ${allocation} tokens are shown as ${tone}`, () => {
    assert.deepEqual([budgetTone(used, allocation).tone, budgetTone(used, allocation).share], [tone, share])
  })
}
