import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flowMetricsSchema, metricsOf } from './metrics.ts'
import type { TaskRecord } from './trace.ts'

const at = (ms: number): string => new Date(ms).toISOString()
const task = (id: string, from: number, to: number, more: Partial<TaskRecord> = {}): TaskRecord => ({
  id,
  name: id,
  kind: 'function',
  parent_id: 'root',
  depends_on: [],
  worker: null,
  status: 'completed',
  attempts: 1,
  start_at: at(from),
  end_at: at(to),
  usage: null,
  run_id: null,
  error: null,
  busy: to - from,
  waited: 0,
  waitingSince: null,
  ...more,
})
const measure = (tasks: TaskRecord[], until: number, workers: number | null = null) =>
  flowMetricsSchema.parse(metricsOf({ tasks, startedAt: new Date(0), until: new Date(until), duration: null, workers }))

test('Flow performance metrics: the total duration, the parallelism and the use of the workers', () => {
  const metrics = measure([task('a', 0, 100), task('b', 0, 100), task('c', 0, 50)], 100)
  assert.equal(metrics.total_duration, 100)
  assert.equal(metrics.parallelism_factor, 2.5)
  assert.equal(metrics.worker_utilization, 0.833)
  assert.equal(measure([task('a', 0, 100), task('b', 0, 100)], 100, 4).worker_utilization, 0.5)
})

test('tasks one after the other keep one worker busy', () => {
  const metrics = measure([task('a', 0, 50), task('b', 50, 100)], 100)
  assert.deepEqual([metrics.parallelism_factor, metrics.worker_utilization], [1, 1])
})

test('the longest tasks come first, with their share and everything that waited for them', () => {
  const tasks = [
    task('a', 0, 10),
    task('slow', 10, 90, { depends_on: ['a'] }),
    task('b', 90, 95, { depends_on: ['slow'] }),
    task('c', 95, 100, { depends_on: ['b'] }),
  ]
  const { bottlenecks, recommendations } = measure(tasks, 100)
  assert.deepEqual(bottlenecks[0], { task_id: 'slow', duration: 80, share: 0.8, blocks: ['b', 'c'] })
  assert.deepEqual(bottlenecks[1]?.task_id, 'a')
  assert.match(recommendations[0] ?? '', /^slow takes 80 % of the time and holds up 2 others/)
  assert.match(measure(tasks.slice(0, 3), 100).recommendations[0] ?? '', /and holds up 1 other:/)
})

test('a task under way counts with the time it has taken so far', () => {
  const running = task('a', 20, 20, { status: 'running', end_at: null, busy: 0 })
  assert.deepEqual(measure([running], 100).bottlenecks, [{ task_id: 'a', duration: 80, share: 0.8, blocks: [] }])
})

test('advice calls tasks by their names, and adds the id where several have one name', () => {
  const named = [
    task('root/plan 1', 0, 20, { name: 'Plan' }),
    task('root/0', 20, 80, { name: 'Writer', depends_on: ['root/plan 1'] }),
    task('root/1', 20, 30, { name: 'Writer', depends_on: ['root/plan 1'] }),
    task('root/end', 80, 100, { name: 'Report', depends_on: ['root/0', 'root/1'], attempts: 2 }),
  ]
  assert.deepEqual(measure(named, 100).recommendations, [
    'Writer (root/0) takes 60 % of the time and holds up 1 other: split it, or make it faster. The critical path is Plan → Writer (root/0) → Report.',
    'Report took 2 attempts: see why it fails before it is tried again.',
  ])
})

test('advice names the critical path', () => {
  const tasks = [
    task('a', 0, 10),
    task('slow', 10, 70, { depends_on: ['a'] }),
    task('beside', 10, 30, { depends_on: ['a'] }),
    task('c', 70, 100, { depends_on: ['slow', 'beside'] }),
  ]
  assert.match(measure(tasks, 100).recommendations[0] ?? '', /^slow takes 60 % .* The critical path is a → slow → c\.$/)
  const even = [
    task('a', 0, 30),
    task('b', 30, 65, { depends_on: ['a'] }),
    task('beside', 30, 50, { depends_on: ['a'] }),
    task('c', 65, 100, { depends_on: ['b', 'beside'] }),
  ]
  assert.match(measure(even, 100).recommendations[0] ?? '', /^The critical path a → b → c takes 100 % of the time: /)
  // A task that is longer than each of the path and ends before the path does is no advice.
  const off = [task('long', 0, 55), task('a', 0, 50), task('b', 50, 100, { depends_on: ['a'] })]
  assert.deepEqual(
    measure(off, 100).recommendations.filter((said) => said.startsWith('long')),
    [],
  )
  const chain = Array.from({ length: 30 }, (_, n) =>
    task(`t${n}`, n * 3, n * 3 + 3, { depends_on: n === 0 ? [] : [`t${n - 1}`] }),
  )
  const [said = ''] = measure([...chain, task('beside', 0, 1)], 90).recommendations
  assert.match(said, /t0 → t1 → t2 → t3 → t4 → 20 more → t25 → t26 → t27 → t28 → t29 takes/)
})

test('a wait for a person is no work: it is no bottleneck, and nobody is advised to split it', () => {
  const asking = task('ask', 0, 90, { busy: 5, waited: 85 })
  const tasks = [asking, task('report', 90, 100, { depends_on: ['ask'] })]
  const { bottlenecks, parallelism_factor, recommendations } = measure(tasks, 100)
  assert.deepEqual(
    bottlenecks.map(({ task_id, duration }) => [task_id, duration]),
    [
      ['report', 10],
      ['ask', 5],
    ],
  )
  assert.equal(parallelism_factor, 0.15)
  assert.deepEqual(recommendations, [
    'ask waited for a person for 85 % of the time: an earlier answer makes the flow faster. The critical path is ask → report.',
  ])
  const away = { ...asking, awaited: 'provider acme' }
  assert.deepEqual(measure([away], 100).recommendations, ['ask waited for provider acme for 85 % of the time.'])
  const open = { ...asking, status: 'running', end_at: null, busy: 0, waited: 0, waitingSince: new Date(5) } as const
  assert.deepEqual(measure([open], 100).bottlenecks, [{ task_id: 'ask', duration: 5, share: 0.05, blocks: [] }])
  assert.ok(!measure([open, task('other', 0, 1)], 100).recommendations.some((said) => /split/.test(said)))
})

const advice: { name: string; tasks: TaskRecord[]; workers: number | null; says: RegExp | null }[] = [
  {
    name: 'more workers if all were busy',
    tasks: [task('a', 0, 50), task('b', 0, 50), task('c', 50, 100), task('d', 50, 100)],
    workers: 2,
    says: /All 2 workers were busy/,
  },
  {
    name: 'fewer workers if some were idle',
    tasks: [task('a', 0, 40), task('b', 60, 100)],
    workers: 8,
    says: /No more than 1 of 8 workers/,
  },
  {
    name: 'branches if all steps are in a row',
    tasks: [task('a', 0, 33), task('b', 33, 66, { depends_on: ['a'] }), task('c', 66, 100, { depends_on: ['b'] })],
    workers: null,
    says: /parallel node/,
  },
  {
    name: 'a look at a task that is tried again and again',
    tasks: [task('a', 0, 40), task('b', 0, 40, { attempts: 4 })],
    workers: null,
    says: /b took 4 attempts/,
  },
  { name: 'nothing if nothing is wrong', tasks: [task('a', 0, 40), task('b', 0, 40)], workers: 2, says: null },
]

for (const { name, tasks, workers, says } of advice) {
  test(`the metrics recommend ${name}`, () => {
    const { recommendations } = measure(tasks, 100, workers)
    if (says)
      assert.ok(
        recommendations.some((sentence) => says.test(sentence)),
        recommendations.join('\n'),
      )
    else assert.deepEqual(recommendations, [])
  })
}

test('a flow that has not begun has no metrics', () => {
  assert.deepEqual(metricsOf({ tasks: [], startedAt: null, until: new Date(5), duration: null, workers: null }), {
    total_duration: 0,
    parallelism_factor: 0,
    worker_utilization: 0,
    bottlenecks: [],
    recommendations: [],
  })
})
