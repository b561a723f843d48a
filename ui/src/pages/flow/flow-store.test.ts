import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowTask, FlowTrace } from '../../api/flow-trace.ts'
import { createFlowStore, shownStatus } from './flow-store.ts'

const at = (second: number): string => new Date(1_000 * second).toISOString()

const task = (id: string, more: Partial<FlowTask> = {}): FlowTask => ({
  id,
  name: id,
  kind: 'function',
  parent_id: 'root',
  depends_on: [],
  worker: null,
  status: 'pending',
  attempts: 0,
  start_at: null,
  end_at: null,
  usage: null,
  run_id: null,
  error: null,
  ...more,
})

const event = (kind: string, id: string, second: number, more: object = {}) => ({
  id: null,
  event: kind,
  data: JSON.stringify({ task_id: id, at: at(second), attempt: 1, ...more }),
})

/** A store whose frames and counts come when the test says so. */
function harness() {
  const frames: (() => void)[] = []
  const counts: (() => void)[] = []
  const store = createFlowStore({ nextFrame: (flush) => frames.push(flush), later: (flush) => counts.push(flush) })
  const run = (all: (() => void)[]): void => {
    for (const each of all.splice(0)) each()
  }
  /** A snapshot that was asked for after all events so far. */
  const load = (trace: FlowTrace): void => store.load(trace, store.mark())
  return { store, load, frames, counts, draw: () => run(frames), count: () => run(counts) }
}

test('many events in one frame draw only the rows that changed, once', () => {
  const { store, load, frames, draw } = harness()
  load({ tasks: ['a', 'b', 'c'].map((id) => task(id)), timeline: [] })
  draw()
  const drawn: string[] = []
  for (const id of ['a', 'b', 'c']) store.onTask(id, () => drawn.push(id))
  store.apply(event('task.started', 'a', 1))
  store.apply(event('task.completed', 'a', 2))
  store.apply(event('task.started', 'c', 2))
  assert.equal(frames.length, 1)
  assert.deepEqual(drawn, [])
  draw()
  assert.deepEqual(drawn, ['a', 'c'])
  assert.equal(store.task('a')?.status, 'completed')
  assert.equal(store.task('a')?.start_at, at(1))
})

test('a row that nobody shows any more is not told', () => {
  const { store, load, draw } = harness()
  load({ tasks: [task('a')], timeline: [] })
  draw()
  let told = 0
  const stop = store.onTask('a', () => told++)
  stop()
  store.apply(event('task.started', 'a', 1))
  draw()
  assert.equal(told, 0)
})

test('events that come again and snapshots that are older change nothing', () => {
  const { store, load, draw, frames } = harness()
  load({ tasks: [task('a')], timeline: [] })
  store.apply(event('task.started', 'a', 1))
  store.apply(event('task.failed', 'a', 2, { error: 'no' }))
  store.apply(event('task.started', 'a', 3, { attempt: 2 }))
  draw()
  const known = store.task('a')
  for (const kind of ['task.started', 'task.failed']) store.apply(event(kind, 'a', 1))
  load({ tasks: [task('a', { status: 'running', attempts: 1, start_at: at(1) })], timeline: [] })
  assert.equal(store.task('a'), known)
  assert.equal(frames.length, 0)
  assert.deepEqual([known?.status, known?.attempts, known?.start_at, known?.end_at], ['running', 2, at(1), null])
})

test('a snapshot gives the run and the tokens that no event tells, and keeps the later state', () => {
  const { store, load } = harness()
  store.apply(event('task.started', 'a', 1, { name: 'Read', agent: 'Reader' }))
  store.apply(event('task.completed', 'a', 4))
  const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3, estimated: false, cost_usd: null }
  const older = task('a', { status: 'running', attempts: 1, start_at: at(1), run_id: 'r', usage, kind: 'agent' })
  load({ tasks: [older], timeline: [] })
  const { status, run_id, usage: told, worker, kind } = store.task('a') ?? assert.fail('no task')
  assert.deepEqual(
    { status, run_id, told, worker, kind },
    { status: 'completed', run_id: 'r', told: usage, worker: 'Reader', kind: 'agent' },
  )
})

test('a newer snapshot after a cut connection replaces what is stale', () => {
  const { store, load } = harness()
  load({ tasks: [task('a', { status: 'running', attempts: 1, start_at: at(1) })], timeline: [] })
  load({ tasks: [task('a', { status: 'completed', attempts: 1, start_at: at(1), end_at: at(9) })], timeline: [] })
  assert.equal(store.task('a')?.status, 'completed')
})

test('rows keep their places: new tasks come last, also after another snapshot', () => {
  const { store, load, draw } = harness()
  load({ tasks: [task('a'), task('b')], timeline: [] })
  draw()
  const first = store.order()
  store.apply(event('task.started', 'new', 1, { name: 'New' }))
  draw()
  load({ tasks: [task('new', { status: 'running', attempts: 1 }), task('b'), task('a')], timeline: [] })
  draw()
  assert.deepEqual(first, ['a', 'b'])
  assert.deepEqual(store.order(), ['a', 'b', 'new'])
})

test('the totals are counted once for many events, and always add up', () => {
  const { store, load, counts, count } = harness()
  load({ tasks: ['a', 'b', 'c', 'd'].map((id) => task(id)), timeline: [] })
  store.apply(event('task.started', 'a', 1))
  store.apply(event('task.completed', 'a', 3))
  store.apply(event('task.started', 'b', 4))
  store.apply(event('task.skipped', 'c', 4))
  assert.equal(counts.length, 1)
  assert.equal(store.totals().all, 0)
  count()
  const { counts: told, all, workedMs, startSum, underWay } = store.totals()
  assert.deepEqual(told, { completed: 1, running: 1, blocked: 0, failed: 0, skipped: 1, pending: 1 })
  assert.deepEqual([all, workedMs, startSum, underWay], [4, 2_000, 4_000, 1])
})

test('a task that waits for a person is blocked until its run goes on', () => {
  const { store, load } = harness()
  load({
    tasks: [task('a', { status: 'running', attempts: 1, start_at: at(1) })],
    timeline: [{ at: at(2), event: 'task.waiting', task_id: 'a', run_id: 'r' }],
  })
  const now = () => shownStatus(store.task('a') ?? assert.fail('no task'))
  assert.equal(now(), 'blocked')
  store.apply(event('task.continued', 'a', 3, { run_id: 'r' }))
  assert.equal(now(), 'running')
  store.apply(event('task.waiting', 'a', 4, { run_id: 'r' }))
  assert.equal(now(), 'blocked')
  store.apply(event('task.completed', 'a', 5))
  assert.equal(now(), 'completed')
})

test('a task goes on only when none of its runs waits, and an older snapshot changes nothing about that', () => {
  const { store, load } = harness()
  const running = task('a', { status: 'running', attempts: 1, start_at: at(1) })
  const waits = (run_id: string) => ({ at: at(2), event: 'task.waiting', task_id: 'a', run_id })
  const slow = { at: at(3), event: 'task.slow', task_id: 'a' }
  const now = () => shownStatus(store.task('a') ?? assert.fail('no task'))
  load({ tasks: [running], timeline: [waits('r'), waits('s'), slow] })
  store.apply(event('task.waiting', 'a', 2, { run_id: 's' }))
  store.apply(event('task.continued', 'a', 4, { run_id: 'r' }))
  assert.equal(now(), 'blocked')
  store.apply(event('task.continued', 'a', 5, { run_id: 's' }))
  assert.equal(now(), 'running')
  const before = store.mark()
  store.apply(event('task.waiting', 'a', 6, { run_id: 'r' }))
  store.load({ tasks: [running], timeline: [] }, before)
  assert.equal(now(), 'blocked')
  load({ tasks: [running], timeline: [] })
  assert.equal(now(), 'running')
})

test('another dependency or a new task is another structure; another status is not', () => {
  const { store, load, draw } = harness()
  load({ tasks: [task('a'), task('b')], timeline: [] })
  draw()
  const before = store.structure()
  store.apply(event('task.started', 'a', 1))
  draw()
  assert.equal(store.structure(), before)
  load({ tasks: [task('b', { depends_on: ['a'] })], timeline: [] })
  draw()
  assert.notEqual(store.structure(), before)
})
