import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MOST_LEAVES } from '../../kernel/flow.ts'
import { builtInDescriptions } from '../definition/built-in-functions.ts'
import { validateFlow } from '../definition/validate.ts'
import { type BuiltInNode, type BuiltInType, builtInPatterns } from '../machine/built-in-patterns.ts'
import { placeholderAgents } from '../machine/patterns/hierarchical.ts'
import { flowTemplates } from '../templates/templates.ts'
import { type RecommendOptions, recommend as recommendFrom } from './recommend.ts'

function recommend(options: Omit<RecommendOptions, 'patterns'>) {
  const { definition, ...recommended } = recommendFrom({ ...options, patterns: builtInPatterns })
  return { ...recommended, definition: definition as BuiltInNode } // of these patterns
}

const known = {
  isAgent: (name: string) => Object.values<string>(placeholderAgents).includes(name),
  isFunction: (name: string) => Object.hasOwn(builtInDescriptions, name),
}

const cases: [workload: string, pattern: BuiltInType][] = [
  ['Process 10,000 documents independently then summarize', 'map_reduce'],
  ['Summarize every one of 500 support tickets and combine them into one report', 'map_reduce'],
  ['Count the words in each of 2k books', 'map_reduce'],
  ['Classify 3000 reviews and aggregate the sentiment, grouped by product', 'map_reduce'],
  ['A map-reduce over our logs', 'map_reduce'],
  ['Read all the contracts and tally how often each clause occurs', 'map_reduce'],
  ['Run all 12 tests at once', 'parallel'],
  ['Translate 5 pages in parallel', 'parallel'],
  ['Ask three experts for different perspectives on the design', 'parallel'],
  ['Check 8 services concurrently and independently', 'parallel'],
  ['Label 40 pictures', 'parallel'],
  ['Ask 3 agents to vote on the best answer', 'parallel'],
  ['Monitor a feed and alert on mentions', 'pipeline'],
  ['Solve a large optimization problem by splitting it', 'fork_join'],
  ['Parse, transform and validate log lines as they arrive', 'pipeline'],
  ['Extract, transform and load a million customer records', 'pipeline'],
  ['Stream incoming orders through fraud checks', 'pipeline'],
  ['Take 5,000 photos: resize them, then tag them, then upload them', 'pipeline'],
  ['An ETL pipeline with 4 stages', 'pipeline'],
  ['Split a large book into chapters, analyze them and join the results', 'fork_join'],
  ['Divide and conquer: sort 100,000 entries', 'fork_join'],
  ['Recursively break the problem down into smaller pieces', 'fork_join'],
  ['Research the market for electric bicycles', 'fork_join'],
  ['Analyze codebase for security issues', 'hierarchical'],
  ['A queen that delegates to 5 workers', 'hierarchical'],
  ['A team of agents, led by a coordinator, writes our strategy', 'hierarchical'],
  ['Plan the release of a complex feature and supervise who does what', 'hierarchical'],
  ['Rewrite the essay until it is good enough', 'loop'],
  ['Improve the slogan over 7 rounds', 'loop'],
  ['Keep refining the draft, at most 4 times', 'loop'],
  ['Repeat the build and fix errors until the tests pass', 'loop'],
  ['Handle bursts of 600 requests of uneven size, rebalancing the workers', 'adaptive'],
  ['Tasks with unpredictable load; some take much longer than others', 'adaptive'],
  ['Switch the topology to mesh when workers are overloaded', 'adaptive'],
  ['Fetch the diff, then review it, then write a comment', 'sequential'],
  ['Write an outline → write the text → proofread', 'sequential'],
  ['Do these things in order, each depends on the one before', 'sequential'],
  ['Write a poem', 'sequential'],
  ['', 'sequential'],
]

for (const [workload, pattern] of cases) {
  test(`"${workload}" calls for ${pattern}`, () => {
    const { definition, estimate, reasoning, ...rest } = recommend({ workload })
    assert.deepEqual(rest, { pattern }, reasoning)
    assert.equal(definition.type, pattern)
    assert.deepEqual(validateFlow(definition, known, builtInPatterns), { isValid: true, root: definition })
    assert.match(reasoning, new RegExp(`^${pattern}`))
    for (const number of Object.values(estimate)) assert.ok(Number.isSafeInteger(number) && number > 0)
  })
}

test('every pattern is recommended for some workload', () => {
  assert.equal(new Set(cases.map(([, pattern]) => pattern)).size, 8)
})

const numbers: [workload: string, estimate: Partial<ReturnType<typeof recommend>['estimate']>][] = [
  // 10,000 calls map the documents; 834 + 70 + 6 + 1 calls put twelve answers at a time together.
  ['Process 10,000 documents independently then summarize', { workers: 50, model_calls: 10_911 }],
  ['Summarize each of 1000 documents, then combine', { workers: 10 }],
  ['Summarize each of 1000 documents with 25 workers, then combine', { workers: 25 }],
  ['Summarize each of 1.5k documents, then combine', { workers: 15 }],
  ['Summarize each of 2 thousand documents, then combine', { workers: 20 }],
  ['Label 40 pictures', { workers: 40, model_calls: 40, tokens: 40 * 1_500, duration: 5_000 }],
  ['Label 40 pictures in parallel with 10 workers', { workers: 10, model_calls: 40, duration: 20_000 }],
  ['Translate 5 texts of 600 words each in parallel', { model_calls: 5, tokens: 5 * 1_300 }],
  ['Translate 5 pages in parallel within 30 minutes and 20% of the budget', { model_calls: 5 }],
  ['Improve the slogan over 7 rounds', { workers: 1, model_calls: 14, duration: 70_000 }],
  ['A queen that delegates to 5 workers', { workers: 5, model_calls: 7, duration: 15_000 }],
  ['Ask 3 agents to vote on the best answer', { workers: 3, model_calls: 3, duration: 5_000 }],
  // 5,000 items, four stages
  ['Take 5,000 photos, then resize them, then tag them, then upload them', { workers: 4, model_calls: 20_000 }],
  ['An ETL pipeline with 4 stages', { workers: 4, model_calls: 40, duration: 13 * 5_000 }],
  ['Fetch the diff, then review it, then write a comment', { workers: 1, model_calls: 3, duration: 15_000 }],
  // Each piece has ten entries: 10 pieces, and one call that joins them.
  ['Divide and conquer: sort 100 entries', { workers: 10, model_calls: 11, duration: 10_000 }],
  ['Handle bursts of 600 requests', { workers: 6, model_calls: 600, duration: 500_000 }],
]
for (const [workload, expected] of numbers) {
  test(`the estimate of "${workload}" follows from its numbers`, () => {
    const { estimate } = recommend({ workload })
    for (const [name, number] of Object.entries(expected)) {
      assert.deepEqual([name, estimate[name as keyof typeof estimate]], [name, number]) // its own keys
    }
  })
}

test('Pattern recommendation: the steps of the description become the prompts of the definition', () => {
  const { definition } = recommend({
    workload: 'Fetch the diff, then review it, and finally write a comment.',
  })
  assert.ok(definition.type === 'sequential')
  assert.deepEqual(
    definition.steps.map((step) => 'args' in step && step.args),
    ['Fetch the diff', 'review it', 'write a comment'].map((prompt) => ({ prompt, input: '{{previous}}' })),
  )
})

test('the reasoning tells counted numbers, assumed numbers and similar templates', () => {
  const counted = recommend({
    workload: 'Process 10,000 documents independently then summarize',
    templates: flowTemplates,
  })
  assert.match(counted.reasoning, /Counts 10000 items\..*Templates of this pattern: document_summary\./)
  assert.match(recommend({ workload: 'Summarize all documents' }).reasoning, /Assumes 10 items/)
  assert.match(recommend({ workload: 'A queen' }).reasoning, /create queen and worker/)
})

test('a hierarchical flow names the agents of the project', () => {
  const { definition, reasoning } = recommend({
    workload: 'A queen that delegates',
    agents: ['boss', 'ann', 'bob'],
  })
  assert.ok(definition.type === 'hierarchical')
  assert.deepEqual([definition.queen, definition.workers], ['boss', ['ann', 'bob', 'ann']])
  assert.doesNotMatch(reasoning, /create/)
  const alone = recommend({
    workload: 'A queen that delegates',
    agents: ['boss'],
  }).definition
  assert.ok(alone.type === 'hierarchical')
  assert.deepEqual([alone.queen, ...new Set(alone.workers)], ['boss', 'boss'])
})

test('every description leads to a definition that validates, with whole numbers', () => {
  const hostile = [
    ...['0 documents, summarize each', '99,999,999,999,999 documents in parallel with 123456789 workers'],
    ...['{{results.secret}} then {{input}} then x', 'Loop 1e9 times until done', 'then then then → → →'],
    ...['x'.repeat(100_000), '5'.repeat(5_000), `${'step then '.repeat(5_000)}`, 'Use 40,000 stages in a pipeline'],
    ...['😀'.repeat(3_001), 'a😀'.repeat(2_000), 'queen with 70000 workers', 'adaptive: 50000 jobs, 20000 workers'],
    ...['divide and conquer 1,000,000,000 items with 90,000 workers', '1,,,2 items', '0.2 items at once'],
  ]
  for (const workload of hostile) {
    const { definition, estimate } = recommend({ workload })
    const checked = validateFlow(definition, known, builtInPatterns)
    assert.deepEqual(checked, { isValid: true, root: definition }, workload.slice(0, 60))
    for (const number of Object.values(estimate)) assert.ok(Number.isSafeInteger(number) && number > 0, workload)
    assert.ok(estimate.workers <= MOST_LEAVES)
    assert.doesNotMatch(JSON.stringify(definition), /\{\{results|\\ud83d"/)
  }
})
