import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { recommend } from '../recommend/recommend.ts'
import { expectedDuration } from './expected-duration.ts'

const f: BuiltInNode = { type: 'task', function: 'f' }
const agent: BuiltInNode = { type: 'task', agent: 'a' }
const items = Array.from({ length: 100 }, (_, place) => place)
const mapped = { type: 'map_reduce', map: 'f', reduce: 'f' } as const
const stages = [f, { type: 'task', agent: 'a' } as const]
const forked = { type: 'fork_join', problem: 1, should_split: 'f', split: 'f', solve: 'f', join: 'f' } as const

const cases: [name: string, root: BuiltInNode, ms: number, given?: { input?: unknown; workers?: number }][] = [
  ['a function', f, 1_000],
  ['an agent', agent, 5_000],
  ['a function that asks a model', { type: 'task', function: 'muster.ask', args: { prompt: 'x' } }, 5_000],
  ['a leaf that has less time', { ...agent, timeout: 300 }, 300],
  ['a sequence adds up', { type: 'sequential', steps: [f, agent, f] }, 7_000],
  ['a pattern that has less time', { type: 'sequential', steps: [f, agent], timeout: 2_000 }, 2_000],
  ['branches run beside each other', { type: 'parallel', branches: [f, agent, f] }, 5_000],
  ['the aggregate comes after the branches', { type: 'parallel', branches: [f, agent], aggregate: 'f' }, 6_000],
  ['a built-in aggregate takes no time', { type: 'parallel', branches: [f, agent], aggregate: 'concat' }, 5_000],
  ['one worker does all of it', { type: 'parallel', branches: [f, agent, f] }, 7_000, { workers: 1 }],
  ['a loop needs its rounds', { type: 'loop', body: agent, until: 'f', max_iterations: 4 }, 24_000],
  ['parts are mapped at once', { ...mapped, items, workers: 10 }, 2_000],
  ['two workers map ten parts in turn', { ...mapped, items, workers: 10 }, 6_000, { workers: 2 }],
  ['no part is empty', { ...mapped, items: [1, 2], workers: 10, map: 'muster.ask_each' }, 6_000],
  [
    'items of the input',
    { ...mapped, items: '{{input.all}}', workers: 10, map: 'muster.ask_each', reduce: 'muster.condense' },
    50_000 + 45_000,
    { input: { all: items } },
  ],
  ['an unknown number of items', { ...mapped, items: 'f', workers: 5, map: 'muster.ask_each' }, 11_000],
  ['no items', { ...mapped, items: [], workers: 5 }, 1_000],
  ['the slowest stage', { type: 'pipeline', source: items, stages, on_error: 'stop' }, 6_000 + 99 * 5_000],
  ['an empty source', { type: 'pipeline', source: [], stages, on_error: 'stop' }, 6_000],
  ['pieces of a problem', { ...forked, workers: 5, stealing: true }, 1_000 + 4_000 + 1_000],
  ['a queen and her workers', { type: 'hierarchical', queen: 'q', workers: ['a', 'b'], goal: 'x' }, 15_000],
  ['the workers of a topology', { type: 'adaptive', workers: 2, tasks: [f, f, f, f, f, f], switch: true }, 3_000],
  ['workers that have names', { type: 'adaptive', workers: ['a', 'b', 'c'], tasks: [f, f, f], switch: true }, 1_000],
]

for (const [name, root, ms, { input = null, workers = null } = {}] of cases) {
  test(`the expected duration: ${name}`, () => {
    assert.equal(expectedDuration({ root, input, workers }, builtInPatterns), ms)
  })
}

test('a duration longer than anybody waits is a number that can be stored', () => {
  const often = (body: BuiltInNode): BuiltInNode => ({ type: 'loop', body, max_iterations: 10_000 })
  const root = often(often(often(often(agent))))
  assert.equal(expectedDuration({ root, input: null, workers: 1 }, builtInPatterns), 2_147_483_647)
})

test('the expected duration of a recommended flow is close to its estimate', () => {
  for (const workload of [
    'Summarize each of 1000 documents, then combine',
    'Label 40 pictures',
    'Fetch, then review',
  ]) {
    const { definition: root, estimate } = recommend({ workload, patterns: builtInPatterns })
    const input = { items: Array.from({ length: workload.includes('1000') ? 1_000 : 40 }, () => 'x') }
    const ratio = expectedDuration({ root, input, workers: estimate.workers }, builtInPatterns) / estimate.duration
    assert.ok(ratio > 0.8 && ratio < 1.25, `${workload}: ${ratio}`)
  }
})
