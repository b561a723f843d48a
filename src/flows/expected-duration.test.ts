import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowNode } from '../kernel/flow.ts'
import { expectedDuration } from './expected-duration.ts'
import { recommend } from './recommend.ts'

const f: FlowNode = { type: 'task', function: 'f' }
const agent: FlowNode = { type: 'task', agent: 'a' }
const items = Array.from({ length: 100 }, (_, place) => place)
const mapped = { type: 'map_reduce', map: 'f', reduce: 'f' } as const
const stages = [f, { type: 'task', agent: 'a' } as const]
const forked = { type: 'fork_join', problem: 1, should_split: 'f', split: 'f', solve: 'f', join: 'f' } as const

const cases: [name: string, root: FlowNode, ms: number, given?: { input?: unknown; workers?: number }][] = [
  ['a function', f, 1_000],
  ['an agent', agent, 5_000],
  ['a function that asks a model', { type: 'task', function: 'muster.ask', args: { prompt: 'x' } }, 5_000],
  ['a leaf that has less time', { ...agent, timeout: 300 }, 300],
  ['a sequence adds up', { type: 'sequential', steps: [f, agent, f] }, 7_000],
  ['a pattern that has less time', { type: 'sequential', steps: [f, agent], timeout: 2_000 }, 2_000],
  ['branches go on beside each other', { type: 'parallel', branches: [f, agent, f] }, 5_000],
  ['but for the aggregate', { type: 'parallel', branches: [f, agent], aggregate: 'f' }, 6_000],
  ['ours takes no time', { type: 'parallel', branches: [f, agent], aggregate: 'concat' }, 5_000],
  ['one worker does all of it', { type: 'parallel', branches: [f, agent, f] }, 7_000, { workers: 1 }],
  ['a loop needs its rounds', { type: 'loop', body: agent, until: 'f', max_iterations: 4 }, 24_000],
  ['parts are mapped at once', { ...mapped, items, workers: 10 }, 2_000],
  ['as many as there is room for', { ...mapped, items, workers: 10 }, 6_000, { workers: 2 }],
  ['no part is empty', { ...mapped, items: [1, 2], workers: 10, map: 'muster.ask_each' }, 6_000],
  [
    'items of the input',
    { ...mapped, items: '{{input.all}}', workers: 10, map: 'muster.ask_each', reduce: 'muster.condense' },
    50_000 + 45_000,
    { input: { all: items } },
  ],
  ['what cannot be known', { ...mapped, items: 'f', workers: 5, map: 'muster.ask_each' }, 11_000],
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
    assert.equal(expectedDuration({ root, input, workers }), ms)
  })
}

test('what would take longer than anybody waits is a number that can be stored', () => {
  const often = (body: FlowNode): FlowNode => ({ type: 'loop', body, max_iterations: 10_000 })
  const root = often(often(often(often(agent))))
  assert.equal(expectedDuration({ root, input: null, workers: 1 }), 2_147_483_647)
})

test('a recommended flow is expected to take about as long as its estimate says', () => {
  for (const workload of [
    'Summarize each of 1000 documents, then combine',
    'Label 40 pictures',
    'Fetch, then review',
  ]) {
    const { definition: root, estimate } = recommend({ workload })
    const input = { items: Array.from({ length: workload.includes('1000') ? 1_000 : 40 }, () => 'x') }
    const ratio = expectedDuration({ root, input, workers: estimate.workers }) / estimate.duration
    assert.ok(ratio > 0.8 && ratio < 1.25, `${workload}: ${ratio}`)
  }
})
