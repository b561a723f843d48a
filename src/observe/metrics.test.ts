import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { silentLog } from '../kernel/log.ts'
import { createMetrics, type Metrics } from './metrics.ts'

type Sample = { name: string; labels: Record<string, string>; value: number }

/** Reads the Prometheus text format strictly: an unknown line fails the test. */
async function read(metrics: Metrics): Promise<Sample[]> {
  const { text } = await metrics.render()
  const samples: Sample[] = []
  const types = new Map<string, string>()
  for (const line of text.split('\n')) {
    const type = /^# TYPE ([a-z0-9_]+) (counter|gauge|histogram|summary)$/.exec(line)
    if (type) types.set(type[1] ?? '', type[2] ?? '')
    if (line === '' || line.startsWith('#')) continue
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[0-9.e+-]+|NaN|[+-]Inf)$/.exec(line)
    assert.ok(match, line)
    const [, name = '', pairs = '', value] = match
    assert.ok(types.has(name.replace(/_(?:bucket|sum|count)$/, '')) || types.has(name), `${name} has no type`)
    const labels = Object.fromEntries(
      [...pairs.matchAll(/([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"/g)].map((pair) => [pair[1], pair[2]]),
    )
    samples.push({ name, labels, value: Number(value) })
  }
  return samples
}

const find = (samples: Sample[], name: string, labels: Record<string, string> = {}): number[] =>
  samples
    .filter(
      (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    )
    .map((sample) => sample.value)

test('the text parses and holds the figures of the process', async () => {
  const metrics = createMetrics()
  const samples = await read(metrics)
  assert.ok((find(samples, 'process_resident_memory_bytes')[0] ?? 0) > 1_000_000)
  assert.equal(find(samples, 'nodejs_eventloop_lag_seconds').length, 1)
  assert.match((await metrics.render()).contentType, /^text\/plain; version=0\.0\.4/)
})

test('requests are counted by method, route and status, in seconds', async () => {
  const metrics = createMetrics()
  metrics.observeHttp({ method: 'GET', route: '/api/projects/:id', status: 200, durationMs: 40 })
  metrics.observeHttp({ method: 'GET', route: '/api/projects/:id', status: 200, durationMs: 2_000 })
  metrics.observeHttp({ method: 'BREW', route: 'unknown', status: 405, durationMs: 1 })
  const samples = await read(metrics)
  const name = 'muster_http_request_duration_seconds'
  const labels = { method: 'GET', route: '/api/projects/:id', status: '200' }
  assert.deepEqual(find(samples, `${name}_count`, labels), [2])
  assert.deepEqual(find(samples, `${name}_sum`, labels), [2.04])
  assert.deepEqual(find(samples, `${name}_bucket`, { ...labels, le: '0.05' }), [1])
  assert.deepEqual(find(samples, `${name}_count`, { method: 'OTHER', status: '405' }), [1])
})

test('a pool is read when its metrics are asked for', async () => {
  const metrics = createMetrics()
  const pool = { totalCount: 5, idleCount: 2, waitingCount: 0 }
  metrics.watchPool(pool)
  metrics.watchPool({ totalCount: 1, idleCount: 1, waitingCount: 0 }, 'listen')
  pool.waitingCount = 7
  const samples = await read(metrics)
  const states = ['used', 'idle', 'waiting'].map((state) =>
    find(samples, 'muster_db_pool_connections', { pool: 'main', state }),
  )
  assert.deepEqual(states, [[3], [2], [7]])
  assert.deepEqual(find(samples, 'muster_db_pool_connections', { pool: 'listen', state: 'used' }), [0])
})

test('own counters, gauges and histograms appear, and label values are escaped', async () => {
  const metrics = createMetrics()
  const runs = metrics.counter({ name: 'muster_runs_total', help: 'Runs.', labels: ['status'] })
  runs.inc({ status: 'a"b\\c\nd' }, 2)
  metrics.gauge({ name: 'muster_slots', help: 'Slots.' }).set(4)
  metrics.histogram({ name: 'muster_step_seconds', help: 'Steps.', buckets: [1, 2] }).observe(1.5)
  const samples = await read(metrics)
  assert.deepEqual(find(samples, 'muster_runs_total', { status: 'a\\"b\\\\c\\nd' }), [2])
  assert.deepEqual(find(samples, 'muster_slots'), [4])
  assert.deepEqual(find(samples, 'muster_step_seconds_bucket', { le: '2' }), [1])
})

test('a gauge that cannot be read is left out and logged; the others are still there', async () => {
  const warnings: unknown[] = []
  const metrics = createMetrics({ log: { ...silentLog, warn: (fields) => warnings.push(fields) } })
  let fails = false
  metrics.watch({ name: 'muster_queued_runs', help: 'Queued.' }, async () => {
    if (fails) throw new Error('database away')
    return [{ labels: {}, value: 3 }]
  })
  metrics.watch({ name: 'muster_waiting_tasks', help: 'Waiting.', labels: ['kind'] }, async () => {
    if (fails) throw new Error('database away')
    return [{ labels: { kind: 'work' }, value: 4 }]
  })
  const known = await read(metrics)
  assert.deepEqual([find(known, 'muster_queued_runs'), find(known, 'muster_waiting_tasks')], [[3], [4]])
  fails = true
  const samples = await read(metrics)
  assert.deepEqual([find(samples, 'muster_queued_runs'), find(samples, 'muster_waiting_tasks')], [[], []])
  assert.equal(find(samples, 'process_resident_memory_bytes').length, 1)
  assert.equal(warnings.length, 2)
})

test('two instances share nothing, and none keeps the process alive', async () => {
  const [first, second] = [createMetrics(), createMetrics()]
  first.counter({ name: 'muster_a_total', help: 'A.' }).inc()
  assert.deepEqual(find(await read(second), 'muster_a_total'), [])
  const program = `import { createMetrics } from '${new URL('./metrics.ts', import.meta.url)}'; await createMetrics().render()`
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], { timeout: 20_000 })
})
