import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createBuiltInFunctions } from '../definition/built-in-functions.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { recommend } from './recommend.ts'

let calls = 0
const functions = createBuiltInFunctions({
  ask: async (_project, prompt) => {
    calls++
    return /yes or no/.test(prompt) ? 'no' : 'an answer'
  },
})
const flows = await createTestFlows({ functions: Object.fromEntries(functions) })

const workloads = [
  'Fetch the diff, then review it, then write a comment',
  'Write a poem',
  'Label 40 pictures with 7 workers in parallel',
  'Improve the slogan over 4 rounds',
  'Process 12 documents independently then summarize',
  'Divide and conquer: sort 100 entries',
  'Handle bursts of 60 requests',
]
for (const workload of workloads) {
  test(`the flow recommended for "${workload}" runs unchanged, with the estimated number of model calls`, async () => {
    const { definition, estimate } = recommend({ workload, patterns: builtInPatterns })
    const count = Number(/\d+/.exec(workload)?.[0] ?? 1)
    calls = 0
    const input = { items: Array.from({ length: count }, (_, place) => `item ${place}`) }
    const { status, error } = await flows.play(definition as BuiltInNode, { input }) // of these patterns
    assert.deepEqual([status, error], ['completed', null])
    assert.equal(calls, estimate.model_calls)
  })
}
