// Flows with metrics that are known beforehand: their parallelism, the use of their workers, their bottlenecks and
// their ends. Leaves take real time, and ratios are compared. A busy machine needs more time between the leaves, so a
// flow whose ratios are off is tried again with leaves that take three times as long, and then nine times.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import type { FlowMetrics } from './metrics.ts'

const kit = await createTestApp({
  models: new Map(),
  functions: { take: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms * pace, ms)) },
})
let pace = 1
const project = await kit.createProject()
const { runs, start, until, ended, play } = flowCalls(kit, project.id)
const take = (ms: number, id?: string) => ({ type: 'task', function: 'take', args: ms, ...(id ? { id } : {}) })
const equal = (count: number, ms: number) => Array.from({ length: count }, () => take(ms))
const parallel = (...branches: object[]) => ({ type: 'parallel', branches })
const sequence = (...steps: object[]) => ({ type: 'sequential', steps })

async function measured(root: object, workers: number): Promise<FlowMetrics> {
  const { id, status } = await play(root, { workers })
  assert.equal(status, 'completed')
  return (await kit.call<FlowMetrics>(`GET ${runs}/${id}/metrics`)).body
}
/** Looks up to three times, at a slower pace each time. */
async function atSomePace(look: () => Promise<void>): Promise<void> {
  for (pace of [1, 3]) {
    try {
      return await look()
    } catch (error) {
      if (!(error instanceof assert.AssertionError)) throw error
    }
  }
  pace = 9
  await look()
}

/** Commits take their time between leaves, so a measured value is a little less than the known one, and never more. */
const isAbout = (value: number, known: number): boolean => value > known * 0.7 && value < known * 1.05

const known: { name: string; root: object; workers: number; atOnce: number; utilization: number }[] = [
  ...[1, 2, 3, 4].map((workers) => ({
    name: `12 equal leaves in parallel, ${workers} workers`,
    root: parallel(...equal(12, 50 + 50 * workers)),
    workers,
    atOnce: workers,
    utilization: 1,
  })),
  {
    name: 'leaves one after the other, and two workers of which one is idle',
    root: sequence(...equal(5, 100)),
    workers: 2,
    atOnce: 1,
    utilization: 1 / 2,
  },
  {
    name: 'two chains, four workers',
    root: parallel(sequence(...equal(4, 100)), sequence(...equal(4, 100))),
    workers: 4,
    atOnce: 2,
    utilization: 1 / 2,
  },
  {
    name: 'half of the work alone, half of it in four branches',
    root: sequence(take(400), parallel(...equal(4, 400))),
    workers: 4,
    atOnce: 5 / 2,
    utilization: 5 / 8,
  },
  {
    name: 'one leaf that takes twice as long as its neighbour',
    root: parallel(take(600), take(300)),
    workers: 2,
    atOnce: 3 / 2,
    utilization: 3 / 4,
  },
  {
    name: 'a map over four workers, then one reduce',
    root: {
      type: 'map_reduce',
      items: [1, 2, 3, 4],
      workers: 4,
      map: take(300),
      reduce: take(300),
    },
    workers: 4,
    atOnce: 5 / 2,
    utilization: 5 / 8,
  },
]

for (const { name, root, workers, atOnce, utilization } of known) {
  test(`parallelism and utilization are as known: ${name}`, (t) =>
    atSomePace(async () => {
      const { parallelism_factor, worker_utilization } = await measured(root, workers)
      t.diagnostic(`${parallelism_factor} at once (${atOnce}), utilization ${worker_utilization} (${utilization})`)
      assert.ok(isAbout(parallelism_factor, atOnce), `${parallelism_factor} at once, not ${atOnce}`)
      assert.ok(isAbout(worker_utilization, utilization), `utilization ${worker_utilization}, not ${utilization}`)
    }))
}

test('twice the workers mean twice the parallelism, half the time, and the same utilization', () =>
  atSomePace(async () => {
    const root = parallel(...equal(16, 100))
    const two = await measured(root, 2)
    const four = await measured(root, 4)
    const isTwice = (ratio: number): boolean => ratio > 1.5 && ratio < 2.5
    assert.ok(isTwice(four.parallelism_factor / two.parallelism_factor))
    assert.ok(isTwice(two.total_duration / four.total_duration))
  }))

test('the bottleneck is the leaf that all others wait for, with its share and the leaves it holds up', () =>
  atSomePace(async () => {
    const root = sequence(
      parallel(take(50, 'quick'), take(600, 'slow'), take(50, 'quick_too')),
      take(50, 'next'),
      take(50, 'last'),
    )
    const { bottlenecks, recommendations } = await measured(root, 3)
    const [first, second] = bottlenecks
    assert.equal(first?.task_id, 'slow')
    // 600 of 700.
    assert.ok(isAbout(first.share, 6 / 7), `${first.share}`)
    assert.deepEqual(first.blocks.toSorted(), ['last', 'next'])
    assert.ok((second?.duration ?? 0) < first.duration / 2)
    assert.ok(recommendations.some((said) => said.startsWith('slow takes ')))
  }))

test('half-way through a uniform flow the estimated end is off by less than 30 % of the duration', (t) =>
  atSomePace(async () => {
    const { id } = await start(parallel(...equal(20, 100)), { workers: 2 })
    const half = await until(id, ({ progress }) => progress.completed >= 10)
    assert.ok(half.eta, 'half-way there is an estimate')
    const { started_at, completed_at, duration, eta } = await ended(id)
    const off = (Date.parse(half.eta) - Date.parse(completed_at ?? '')) / (duration ?? 1)
    t.diagnostic(
      `begun ${started_at}, estimated ${half.eta} with ${half.progress.completed} done, ended ${completed_at}: ${Math.round(off * 100)} % off`,
    )
    assert.ok(Math.abs(off) < 0.3, `${Math.round(off * 100)} % off`)
    assert.equal(eta, null, 'a flow that has ended has no estimate')
  }))
