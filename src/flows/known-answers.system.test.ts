// Flows with metrics that are known beforehand: their parallelism, the use of their workers, their bottlenecks and
// their ends. Leaves take real time; ratios are compared, with room for a busy machine.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { flowCalls } from '../../test/kit/flow-calls.ts'
import type { FlowMetrics } from './flow-metrics.ts'

const kit = await createTestApp({
  models: new Map(),
  functions: { take: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms, ms)) },
})
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
/** Commits take their time between leaves, so that it is a little less than it would be; never more. */
const isAbout = (value: number, known: number): boolean => value > known * 0.7 && value < known * 1.05

const known: { name: string; root: object; workers: number; atOnce: number; utilization: number }[] = [
  ...[1, 2, 3, 4].map((workers) => ({
    name: `12 equal leaves in parallel, ${workers} workers`,
    root: parallel(...equal(12, 50 + 50 * workers)),
    ...{ workers, atOnce: workers, utilization: 1 },
  })),
  {
    name: 'one after the other, of two workers one has nothing to do',
    root: sequence(...equal(5, 100)),
    ...{ workers: 2, atOnce: 1, utilization: 1 / 2 },
  },
  {
    name: 'two chains, four workers',
    root: parallel(sequence(...equal(4, 100)), sequence(...equal(4, 100))),
    ...{ workers: 4, atOnce: 2, utilization: 1 / 2 },
  },
  {
    name: 'half of it alone, half of it in four',
    root: sequence(take(400), parallel(...equal(4, 400))),
    ...{ workers: 4, atOnce: 5 / 2, utilization: 5 / 8 },
  },
  {
    name: 'one leaf that takes twice as long as its neighbour',
    root: parallel(take(600), take(300)),
    ...{ workers: 2, atOnce: 3 / 2, utilization: 3 / 4 },
  },
  {
    name: 'a map over four workers, then one reduce',
    root: {
      ...{ type: 'map_reduce', items: [1, 2, 3, 4], workers: 4 },
      ...{ map: take(300), reduce: take(300) },
    },
    ...{ workers: 4, atOnce: 5 / 2, utilization: 5 / 8 },
  },
]

for (const { name, root, workers, atOnce, utilization } of known) {
  test(`parallelism and utilization are as known: ${name}`, async (t) => {
    const { parallelism_factor, worker_utilization } = await measured(root, workers)
    t.diagnostic(`${parallelism_factor} at once (${atOnce}), utilization ${worker_utilization} (${utilization})`)
    assert.ok(isAbout(parallelism_factor, atOnce), `${parallelism_factor} at once, not ${atOnce}`)
    assert.ok(isAbout(worker_utilization, utilization), `utilization ${worker_utilization}, not ${utilization}`)
  })
}

test('twice the workers are twice the parallelism, half the time, and as busy', async () => {
  const root = parallel(...equal(16, 100))
  const two = await measured(root, 2)
  const four = await measured(root, 4)
  const isTwice = (ratio: number): boolean => ratio > 1.5 && ratio < 2.5
  assert.ok(isTwice(four.parallelism_factor / two.parallelism_factor))
  assert.ok(isTwice(two.total_duration / four.total_duration))
})

test('the bottleneck is the leaf that everything waits for, with its share and what it holds up', async () => {
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
})

test('half-way through a uniform flow the end is foretold within 30 % of the time it takes', async (t) => {
  const { id } = await start(parallel(...equal(20, 100)), { workers: 2 })
  const half = await until(id, ({ progress }) => progress.completed >= 10)
  assert.ok(half.eta, 'half-way it is known')
  const { started_at, completed_at, duration, eta } = await ended(id)
  const off = (Date.parse(half.eta) - Date.parse(completed_at ?? '')) / (duration ?? 1)
  t.diagnostic(
    `begun ${started_at}, foretold ${half.eta} with ${half.progress.completed} done, ended ${completed_at}: ${Math.round(off * 100)} % off`,
  )
  assert.ok(Math.abs(off) < 0.3, `${Math.round(off * 100)} % off`)
  assert.equal(eta, null, 'what has ended has no end to be foretold')
})
