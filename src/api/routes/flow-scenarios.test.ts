// The scenarios of the specification of flows, as a client of the API sees them, with the numbers of the specification.
// The scenarios of pipelines and of the queen have files of their own; topologies and alerts are tested in flows/.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import type { FunctionContext } from '../../flows/definition/function-context.ts'
import type { FlowMetrics } from '../../flows/history/metrics.ts'
import { traceSchema } from '../../flows/history/trace.ts'
import type { AppFunction } from '../../kernel/app.ts'
import type { Settings } from '../../kernel/project.ts'

const turn = (): Promise<void> => new Promise(setImmediate)
/** The calls so far, in order. */
let calls: { name: string; given: unknown; key: string; scope: string; attempt: number }[] = []
const works = new Map<string, AppFunction>()
const counted =
  (name: string): AppFunction =>
  (given: never, context: FunctionContext) => {
    const { key, scope = '', attempt } = context
    calls.push({ name, given: structuredClone(given), key, scope, attempt })
    return works.get(name)?.(given, context) ?? null
  }
const names = ['a', 'b', 'c', 'd', 'e', 'map', 'reduce', 'partition', 'is_large', 'split', 'solve', 'join', 'together']
const kit = await createTestApp({
  models: new Map([['script', createScriptedModel(() => ({ text: 'An agent was here.' }))]]),
  functions: Object.fromEntries(names.map((name) => [name, counted(name)])),
})
const project = await kit.createProject()
const { runs, start, read, until, ended, play, tasksOf, eventsOf } = flowCalls(kit, project.id)
const settings = async (): Promise<Settings> =>
  (await kit.call<Settings>(`GET /api/projects/${project.id}/settings`)).body
const patchSettings = (body: Partial<Settings>) => kit.call(`PATCH /api/projects/${project.id}/settings`, { body })

/** The leaves of the next flow. Each is called by its name. */
function given(functions: Record<string, AppFunction>): void {
  calls = []
  works.clear()
  for (const [name, work] of Object.entries(functions)) works.set(name, work)
}
const called = (name: string) => calls.filter((call) => call.name === name)
const order = (): string[] => calls.map((call) => call.name)
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0)
const f = (name: string, more: object = {}) => ({ type: 'task', function: name, id: name, ...more })
const sequence = (...steps: object[]) => ({ type: 'sequential', steps })
const parallel = (...branches: object[]) => ({ type: 'parallel', branches })
const fail = (): never => {
  throw new Error('broken')
}
/** A function that stays under way until the test opens its gate or the function is told to stop. */
function gated(value: unknown) {
  const gate = Promise.withResolvers<void>()
  const stopped = Promise.withResolvers<void>()
  const work: AppFunction = async (_: unknown, { signal }) => {
    signal.addEventListener('abort', () => stopped.resolve())
    await Promise.race([gate.promise, stopped.promise])
    return signal.aborted ? fail() : value
  }
  return { work, open: () => gate.resolve(), stopped: stopped.promise }
}
/** A function whose calls end only when `count` of them are under way. */
function barrier(count: number, value: (given: never) => unknown): AppFunction {
  let begun = 0
  return async (argument) => {
    begun++
    while (begun < count) await turn()
    return value(argument)
  }
}

test('Execute flow', async () => {
  const add = (n: number): number => n + 1
  const first = gated(1)
  given({ a: first.work, b: add, c: add, d: add, e: add })
  const context = await start(sequence(f('a'), f('b'), f('c'), f('d'), f('e')), { input: 0 })
  assert.ok(['queued', 'running'].includes(context.status))
  assert.deepEqual([context.input, context.output, context.results, context.progress.total], [0, null, {}, 5])
  first.open()
  const events = await eventsOf(context.id)
  assert.deepEqual(
    events.map(({ event, data }) => [event, data.task_id]),
    [
      ['flow.started', undefined],
      ...['a', 'b', 'c', 'd', 'e'].flatMap((id) => [
        ['task.started', id],
        ['task.completed', id],
      ]),
      ['flow.completed', undefined],
    ],
  )
  const run = await read(context.id)
  assert.deepEqual(run.results, { a: 1, b: 2, c: 3, d: 4, e: 5 })
  assert.deepEqual([run.status, run.output, run.progress.completed], ['completed', 5, 5])
})

test('Flow state persistence', async () => {
  const hanging = gated('b')
  given({ a: () => 'a', b: hanging.work, c: (previous: string) => `${previous}, then c` })
  const { id } = await start(sequence(f('a'), f('b'), f('c')))
  // Other processes see every change at once, because the change is saved by then.
  const saved = await until(id, ({ progress }) => progress.running === 1 && progress.completed === 1)
  assert.deepEqual(saved.progress, { total: 3, pending: 1, running: 1, completed: 1, failed: 0, skipped: 0 })
  assert.deepEqual(saved.results, { a: 'a' })
  assert.deepEqual(
    (await tasksOf(id)).map((task) => [task.id, task.status]),
    [
      ['a', 'completed'],
      ['b', 'running'],
      ['c', 'pending'],
    ],
  )
  // The test plays a crash: the process that owned the run loses it, and only the saved state is left.
  const again = gated('b, the second time')
  works.set('b', again.work)
  await kit.pool.query(
    'update flow_runs set fence = fence + 1, owner = null, ready_at = muster.now(), crashes = crashes + 1 where id = $1',
    [id],
  )
  while (called('b').length < 2) await turn()
  hanging.open()
  again.open()
  const run = await ended(id)
  assert.deepEqual([run.status, run.output], ['completed', 'b, the second time, then c'])
  assert.deepEqual(order(), ['a', 'b', 'b', 'c'], 'finished leaves are not called again; the leaf under way is')
  const [first, second] = called('b')
  assert.deepEqual([second?.key, second?.attempt], [first?.key, 1], 'an interruption does not count as an attempt')
})

test('Flow cancellation', async () => {
  assert.equal((await settings()).cancel_drain, 30_000)
  const slow = gated('b')
  given({ a: () => 'a', b: slow.work, c: () => 'c' })
  const { id } = await start(sequence(parallel(f('a'), f('b')), f('c')))
  await until(id, ({ progress }) => progress.completed === 1 && progress.running === 1)
  const asked = await kit.call<{ status: string }>(`POST ${runs}/${id}/cancel`)
  assert.deepEqual([asked.status, asked.body.status], [200, 'running'], 'the cancel waits for leaves under way')
  slow.open()
  const run = await ended(id)
  assert.deepEqual([run.status, run.results], ['cancelled', { a: 'a', b: 'b' }])
  assert.deepEqual(run.progress, { total: 3, pending: 0, running: 0, completed: 2, failed: 0, skipped: 1 })
  assert.deepEqual(called('c'), [])
  assert.equal((await eventsOf(id)).at(-1)?.event, 'flow.cancelled')

  // A function that does not end in that time gets its signal, and the run waits for it no longer.
  await patchSettings({ cancel_drain: 20 })
  given({ a: () => 'a', b: () => new Promise(() => {}) })
  const deaf = await start(parallel(f('a'), f('b')))
  await until(deaf.id, ({ progress }) => progress.completed === 1 && progress.running === 1)
  await kit.call(`POST ${runs}/${deaf.id}/cancel`)
  const left = await ended(deaf.id)
  assert.deepEqual([left.status, left.results, left.progress.failed], ['cancelled', { a: 'a' }, 1])
  await patchSettings({ cancel_drain: 30_000 })
})

test('Flow timeout handling', async () => {
  assert.equal((await settings()).flow_timeout, 600_000)
  const slow = gated('b')
  given({ a: () => 'a', b: slow.work, c: () => 'c' })
  const usual = await play(f('a'))
  const { rows } = await kit.pool.query('select timeout from flow_runs where id = $1', [usual.id])
  assert.deepEqual(rows, [{ timeout: 600_000 }])
  const run = await play(sequence(f('a'), f('b'), f('c')), { timeout: 300 })
  await slow.stopped
  assert.deepEqual([run.status, run.error], ['timed_out', 'The time of the flow was up.'])
  assert.deepEqual(run.results, { a: 'a' })
  assert.deepEqual(
    (await tasksOf(run.id)).map((task) => [task.id, task.status]),
    [
      ['a', 'completed'],
      ['b', 'failed'],
      ['c', 'skipped'],
    ],
  )
  assert.deepEqual(called('c'), [])
  const last = (await eventsOf(run.id)).at(-1)
  assert.deepEqual([last?.event, last?.data.error], ['flow.timed_out', run.error])
})

test('Execute sequential tasks', async () => {
  given({ a: () => 'A', b: (got: string) => `${got}, B`, c: (got: string) => `${got}, C` })
  const run = await play(sequence(f('a'), f('b'), f('c')), { input: 'in' })
  assert.deepEqual(
    calls.map((call) => [call.name, call.given]),
    [
      ['a', 'in'],
      ['b', 'A'],
      ['c', 'A, B'],
    ],
  )
  assert.deepEqual([run.status, run.output], ['completed', 'A, B, C'])
  const [a, b, c] = await tasksOf(run.id)
  assert.deepEqual([a?.depends_on, b?.depends_on, c?.depends_on], [[], ['a'], ['b']])
})

test('Sequential flow with failure', async () => {
  given({ a: () => 'A', b: fail, c: () => 'C' })
  const run = await play(sequence(f('a'), f('b'), f('c')))
  assert.deepEqual(order(), ['a', 'b'])
  assert.deepEqual([run.status, run.results], ['failed', { a: 'A' }])
  assert.match(run.error ?? '', /broken$/)
  assert.deepEqual(run.progress, { total: 3, pending: 0, running: 0, completed: 1, failed: 1, skipped: 1 })
})

test('Sequential flow with retry', async () => {
  const failing = (times: number): AppFunction => {
    let left = times
    return () => (left-- > 0 ? fail() : 'at last')
  }
  const root = sequence(f('a'), f('b', { retry: { max_retries: 3 } }), f('c'))
  given({ a: () => 'A', b: failing(3), c: (got: string) => `${got}, C` })
  const good = await play(root)
  assert.deepEqual([good.status, good.output], ['completed', 'at last, C'])
  assert.deepEqual(
    called('b').map((call) => call.attempt),
    [1, 2, 3, 4],
  )
  assert.equal((await tasksOf(good.id)).find((task) => task.id === 'b')?.attempts, 4)
  given({ a: () => 'A', b: failing(4), c: () => 'C' })
  const bad = await play(root)
  assert.deepEqual([bad.status, bad.results, called('b').length, called('c').length], ['failed', { a: 'A' }, 4, 0])
})

test('Execute parallel tasks', async () => {
  // None of the three branches would ever end if they were not all under way together.
  const together = barrier(3, (got) => `of ${got}`)
  given({ a: together, b: together, c: together })
  const run = await play(parallel(f('a'), f('b'), f('c')), { input: 'in' })
  assert.deepEqual([run.status, run.output], ['completed', ['of in', 'of in', 'of in']])
  const events = (await eventsOf(run.id)).map(({ event }) => event)
  assert.deepEqual(events.slice(1, 4), ['task.started', 'task.started', 'task.started'])
  // The flow waits for all of its branches.
  const last = gated('B')
  given({ a: () => 'A', b: last.work, c: () => 'C' })
  const { id } = await start(parallel(f('a'), f('b'), f('c')))
  const waiting = await until(id, ({ progress }) => progress.completed === 2)
  assert.deepEqual([waiting.status, waiting.progress.running], ['running', 1])
  last.open()
  assert.deepEqual((await ended(id)).output, ['A', 'B', 'C'])
})

test('Parallel flow with partial failure', async () => {
  const a = gated('A')
  const c = gated('C')
  given({ a: a.work, b: fail, c: c.work })
  const { id } = await start(parallel(f('a'), f('b'), f('c')))
  const failed = await until(id, ({ progress }) => progress.failed === 1)
  assert.deepEqual([failed.status, failed.progress.running], ['running', 2])
  a.open()
  c.open()
  const run = await ended(id)
  assert.deepEqual([run.status, run.output, run.results], ['partial', ['A', null, 'C'], { a: 'A', c: 'C' }])
  assert.deepEqual([run.progress.completed, run.progress.failed, run.progress.total], [2, 1, 3])
})

test('Parallel flow with result aggregation', async () => {
  given({ a: () => ({ a: 1 }), b: () => ({ b: [2] }), c: () => ({ a: 3 }), together: (all: unknown[]) => all.length })
  const root = parallel(f('a'), f('b'), f('c'))
  assert.deepEqual((await play(root)).output, [{ a: 1 }, { b: [2] }, { a: 3 }])
  assert.deepEqual((await play({ ...root, aggregate: 'merge' })).output, { a: 3, b: [2] })
  assert.equal((await play({ ...root, aggregate: 'together' })).output, 3)
  assert.deepEqual(called('together')[0]?.given, [{ a: 1 }, { b: [2] }, { a: 3 }])
  given({ a: () => [1, 2], b: () => [], c: () => [3] })
  assert.deepEqual((await play({ ...root, aggregate: 'concat' })).output, [1, 2, 3])
})

test('Map phase distribution', async () => {
  const last = gated(null)
  const arrived = barrier(10, () => null)
  const map: AppFunction = async ({ items }: { items: number[] }, context) => {
    await arrived(null as never, context) // ten workers at once, or no call ever ends
    if (items[0] === 900) await last.work(null as never, context)
    return [sum(items)]
  }
  given({ map, reduce: ({ values }: { values: number[] }) => sum(values) })
  const root = { type: 'map_reduce', items: '{{input}}', workers: 10, map: 'map', reduce: 'reduce' }
  const { id } = await start(root, { input: range(1_000) })
  await until(id, ({ progress }) => progress.completed === 9)
  assert.deepEqual(called('reduce'), [], 'the map phase is not over before its last worker')
  last.open()
  const run = await ended(id)
  assert.deepEqual([run.status, run.output], ['completed', 499_500])
  const parts = called('map').map((call) => (call.given as { items: number[] }).items) // as map is given them
  assert.deepEqual(
    parts.toSorted((one, other) => (one[0] ?? 0) - (other[0] ?? 0)),
    range(10).map((place) => range(100).map((index) => place * 100 + index)),
  )
  const mappers = (await tasksOf(id)).filter((task) => task.name === 'map')
  assert.equal(new Set(mappers.map((task) => task.worker)).size, 10)
})

test('Reduce phase aggregation', async () => {
  given({
    map: ({ items }: { items: number[] }) => items.map((item) => [`k${item % 30}`, item]),
    reduce: ({ key, values }: { key: string; values: number[] }) => ({ key, count: values.length, total: sum(values) }),
  })
  const root = { type: 'map_reduce', items: '{{input}}', workers: 10, map: 'map', reduce: 'reduce' }
  const run = await play(root, { input: range(900) })
  const keys = range(30).map((place) => `k${place}`)
  const byKey = (key: string): number[] => range(900).filter((item) => `k${item % 30}` === key)
  assert.deepEqual(
    run.output,
    keys.toSorted().map((key) => ({ key, count: 30, total: sum(byKey(key)) })),
  )
  const reduced = called('reduce').map((call) => call.given as { key: string; values: number[] }) // as reduce is given
  assert.deepEqual(reduced.map(({ key }) => key).toSorted(), keys.toSorted(), 'each key is reduced once, as a whole')
  for (const { key, values } of reduced) assert.deepEqual(values, byKey(key))
  const tasks = await tasksOf(run.id)
  const mappers = tasks.filter((task) => task.name === 'map')
  const reducers = tasks.filter((task) => task.name === 'reduce')
  assert.equal(mappers.length, 10)
  assert.ok(reducers.length > 1 && reducers.length <= 10, `${reducers.length} reducers`)
  assert.equal(new Set(reducers.map((task) => task.worker)).size, reducers.length)
  for (const task of reducers) assert.equal(task.depends_on.length, 10)
  const [firstReduce = 0, lastMap = 0] = [order().indexOf('reduce'), order().lastIndexOf('map')]
  assert.ok(firstReduce > lastMap)
})

test('Map-reduce with custom partition function', async () => {
  const placeOf = (key: string, partitions: number): number =>
    sum([...key].map((letter) => letter.charCodeAt(0))) % partitions
  given({
    map: ({ items }: { items: string[] }) => items.map((item) => [item, 1]),
    partition: ({ key, partitions }: { key: string; partitions: number }) => placeOf(key, partitions),
    reduce: ({ key, values }: { key: string; values: number[] }) => [key, values.length],
  })
  const words = range(200).map((index) => `word${index % 20}`)
  const root = { type: 'map_reduce', items: '{{input}}', workers: 10, map: 'map', reduce: 'reduce', reducers: 4 }
  const run = await play({ ...root, partition: 'partition' }, { input: words })
  const keys = [...new Set(words)].toSorted()
  assert.deepEqual(
    called('partition').map((call) => call.given),
    keys.map((key) => ({ key, partitions: 4 })),
    'the function is asked about each key once',
  )
  for (const { given: got, scope } of called('reduce')) {
    const { key } = got as { key: string } // as reduce is given
    assert.match(scope, new RegExp(`/reduce ${placeOf(key, 4)}:`), `${key} went elsewhere`)
  }
  assert.deepEqual(
    run.output,
    keys.map((key) => [key, 10]),
  )
})

/** Problems are ranges `{from, size}`. */
interface Problem {
  from: number
  size: number
}
const inParts =
  (count: number): AppFunction =>
  ({ from, size }: Problem): Problem[] =>
    range(count).map((place) => ({ from: from + (place * size) / count, size: size / count }))
const forkJoin = {
  type: 'fork_join',
  problem: { from: 0, size: 1_000 },
  workers: 10,
  should_split: 'is_large',
  split: 'split',
  solve: 'solve',
  join: 'join',
}
const solving = {
  is_large: ({ size }: Problem) => size > 100,
  solve: ({ from, size }: Problem) => [from, from + size],
  join: (parts: [number, number][]) => [parts[0]?.[0], parts.at(-1)?.[1]],
}

test('Fork phase', async () => {
  // Ten workers have a piece each, or no call ends.
  given({ ...solving, split: inParts(10), solve: barrier(10, solving.solve) })
  const run = await play(forkJoin)
  assert.deepEqual([run.status, run.output], ['completed', [0, 1_000]])
  assert.deepEqual(calls[0]?.given, { from: 0, size: 1_000 }, 'the function is asked about the whole first')
  assert.equal(called('split').length, 1)
  assert.deepEqual(
    called('solve')
      .map((call) => call.given)
      .toSorted((one, other) => (one as Problem).from - (other as Problem).from), // as split makes them
    range(10).map((place) => ({ from: place * 100, size: 100 })),
  )
  const solvers = (await tasksOf(run.id)).filter((task) => task.name === 'solve')
  assert.equal(new Set(solvers.map((task) => task.worker)).size, 10)

  // 1000, 500, 250, 125, 62.5: a problem that is still large is forked again.
  given({ ...solving, split: inParts(2) })
  const halved = await play(forkJoin)
  assert.deepEqual([halved.status, halved.output], ['completed', [0, 1_000]])
  assert.deepEqual(
    [called('is_large').length, called('split').length, called('solve').length, called('join').length],
    [31, 15, 16, 15],
  )
})

test('Join phase', async () => {
  const join = (parts: [number, number][]): [number, number] => {
    // The parts come in order and without a gap, in any order of their ends.
    for (const [index, part] of parts.slice(1).entries()) assert.equal(parts[index]?.[1], part[0])
    return [parts[0]?.[0] ?? Number.NaN, parts.at(-1)?.[1] ?? Number.NaN]
  }
  given({ ...solving, split: inParts(2), join })
  const run = await play(forkJoin)
  assert.deepEqual([run.status, run.output], ['completed', [0, 1_000]])
  const widths = called('join').map((call) => {
    const parts = call.given as [number, number][] // as join is given
    return (parts.at(-1)?.[1] ?? 0) - (parts[0]?.[0] ?? 0)
  })
  assert.deepEqual(
    widths.toSorted((one, other) => one - other),
    [...Array(8).fill(125), ...Array(4).fill(250), 500, 500, 1_000],
  )
  assert.equal(order().at(-1), 'join')
  assert.equal(widths.at(-1), 1_000, 'the root is joined last, and its result is the answer')
  const tasks = await tasksOf(run.id)
  const last = tasks.find((task) => task.id === 'root/whole/join')
  assert.equal(last?.depends_on.filter((id) => id.endsWith('/join')).length, 2)
})

test('Compose patterns', async () => {
  given({
    a: (n: number) => n + 1,
    b: (n: number) => n * 10,
    c: (n: number) => n * 100,
    d: (n: number) => n + 1,
    e: (both: number[]) => sum(both),
  })
  const inner = { ...parallel(f('b'), { ...sequence(f('c'), f('d')), id: 'deep' }), id: 'inner' }
  const run = await play(sequence(f('a'), inner, f('e')), { input: 1 })
  assert.deepEqual([run.status, run.output], ['completed', 221])
  assert.deepEqual(run.results, { a: 2, b: 20, c: 200, d: 201, e: 221 })
  const givenTo = Object.fromEntries(calls.map((call) => [call.name, call.given]))
  assert.deepEqual(givenTo, { a: 1, b: 2, c: 2, d: 200, e: [20, 201] }, 'each level gets the result before it')
  const tasks = await tasksOf(run.id)
  assert.deepEqual(
    tasks.map((task) => [task.id, task.parent_id]),
    [
      ['a', 'root'],
      ['b', 'inner'],
      ['c', 'deep'],
      ['d', 'deep'],
      ['e', 'root'],
    ],
  )
  assert.deepEqual(tasks.at(-1)?.depends_on.toSorted(), ['b', 'd'])
  // A failure of an inner step affects only its own level.
  works.set('c', fail)
  const partial = await play(sequence(f('a'), inner, f('e')), { input: 1 })
  assert.deepEqual([partial.status, partial.output], ['partial', 20])
})

test('Flow execution trace', async () => {
  given({ a: () => 'A', b: () => 'B', e: () => 'E' })
  await kit.createAgent(project.id, { name: 'reviewer' })
  const agent = { type: 'task', agent: 'reviewer', id: 'review', input: 'Look at {{previous}}.' }
  const { id } = await play(sequence(f('a'), parallel(f('b'), agent), f('e')))
  const { tasks, timeline } = traceSchema.parse((await kit.call(`GET ${runs}/${id}/trace`)).body)
  assert.deepEqual([timeline[0]?.event, timeline.at(-1)?.event], ['flow.started', 'flow.completed'])
  assert.deepEqual(
    timeline.map(({ at }) => at),
    timeline.map(({ at }) => at).toSorted(),
  )
  for (const task of tasks) assert.ok(task.start_at !== null && task.end_at !== null && task.start_at <= task.end_at)
  const byId = new Map(tasks.map((task) => [task.id, task]))
  for (const [one, other] of [
    ['a', 'b'],
    ['a', 'review'],
    ['b', 'e'],
    ['review', 'e'],
  ]) {
    assert.ok(byId.get(other ?? '')?.depends_on.includes(one ?? ''))
    assert.ok((byId.get(one ?? '')?.end_at ?? '') <= (byId.get(other ?? '')?.start_at ?? ''))
  }
  assert.equal(byId.get('review')?.worker, 'reviewer')
  assert.equal(byId.get('review')?.usage?.total_tokens, 15)
  const { worker_utilization } = (await kit.call<FlowMetrics>(`GET ${runs}/${id}/metrics`)).body
  assert.ok(worker_utilization > 0 && worker_utilization <= 1)
  for (const [format, type] of [
    ['chrome', 'application/json'],
    ['otlp', 'application/json'],
    ['csv', 'text/csv'],
  ]) {
    const exported = await kit.call(`GET ${runs}/${id}/trace?format=${format}`)
    assert.equal(exported.status, 200)
    assert.ok(String(exported.headers['content-type']).startsWith(type ?? ''))
    assert.ok(exported.text.includes('review'))
  }
})

test('Flow performance metrics', async () => {
  const slow = gated('slow')
  given({ a: () => 'A', b: slow.work, c: () => 'C', e: () => 'E' })
  const { id } = await start(sequence(f('a'), parallel(f('b'), f('c')), f('e')), { workers: 2 })
  await until(id, ({ progress }) => progress.completed === 2 && progress.running === 1)
  // The wait is far longer than all other work of the flow, by the clock that also measures the flow.
  await new Promise((resolve) => setTimeout(resolve, 300))
  slow.open()
  const { duration } = await ended(id)
  const { body, status } = await kit.call<FlowMetrics>(`GET ${runs}/${id}/metrics`)
  assert.equal(status, 200)
  assert.equal(body.total_duration, duration)
  assert.ok(body.total_duration >= 300)
  assert.ok(body.parallelism_factor > 0.5 && body.parallelism_factor < 1.5, `${body.parallelism_factor}`)
  assert.ok(body.worker_utilization > 0.25 && body.worker_utilization < 0.75, `${body.worker_utilization}`)
  assert.equal(body.bottlenecks[0]?.task_id, 'b')
  assert.deepEqual(body.bottlenecks[0]?.blocks, ['e'])
  assert.ok(
    body.recommendations.some((said) => /^b takes \d+ % of the time .*: split it, or make it faster/.test(said)),
  )
})

test('Pattern recommendation', async () => {
  const { body } = await kit.call<{
    pattern: string
    definition: { type: string }
    estimate: { workers: number; model_calls: number; tokens: number; duration: number }
    reasoning: string
  }>(`POST /api/projects/${project.id}/flows/recommend`, {
    body: { workload: 'Process 10,000 documents independently then summarize' },
  })
  assert.deepEqual([body.pattern, body.definition.type], ['map_reduce', 'map_reduce'])
  const checked = await kit.call(`POST /api/projects/${project.id}/flows/validate`, { body: { root: body.definition } })
  assert.equal(checked.body.valid, true)
  assert.ok(body.estimate.workers > 1 && body.estimate.model_calls >= 10_000)
  assert.ok(body.estimate.tokens > 10_000 && body.estimate.duration > 0)
  assert.match(body.reasoning, /10,?000/)
})

interface Shown {
  name: string
  pattern: string
  usage: string
  example: { input: object }
  root: { type: string; steps?: { id: string }[]; stages?: { id: string }[]; branches?: object[] }
}

test('Flow templates library', async () => {
  const { body } = await kit.call<{ items: Shown[] }>(`GET /api/projects/${project.id}/flow-templates`)
  const templates = new Map(body.items.map((template) => [template.name, template]))
  const patternOf = (name: string): string | undefined => templates.get(name)?.pattern
  assert.deepEqual(['code_review', 'data_pipeline', 'research', 'swarm_test'].map(patternOf), [
    ...['sequential', 'pipeline', 'fork_join', 'parallel'],
  ])
  const idsOf = (nodes: readonly { id: string }[] = []): string[] => nodes.map(({ id }) => id)
  assert.deepEqual(idsOf(templates.get('code_review')?.root.steps), ['fetch', 'review', 'aggregate'])
  assert.deepEqual(idsOf(templates.get('data_pipeline')?.root.stages), ['extract', 'transform', 'load'])
  assert.ok((templates.get('swarm_test')?.root.branches ?? []).length > 1)
  for (const { name, usage, example, pattern, root } of body.items) {
    assert.equal(root.type, pattern)
    assert.match(usage, /^Input: /, name)
    // Every input of the example is in the documentation.
    for (const key of Object.keys(example.input)) assert.match(usage, new RegExp(`\\b${key}\\b`), name)
    const run = await kit.call<{ id: string }>(`POST ${runs}`, { body: { template: name, ...example } })
    assert.equal((await ended(run.body.id)).status, 'completed', name)
  }
})
