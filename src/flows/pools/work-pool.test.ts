import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Topology } from '../../kernel/flow.ts'
import { createWorkPool, type WorkPool, type WorkPoolOptions } from './work-pool.ts'

interface Task {
  id: string
}

const tasks = (count: number, from = 1): Task[] =>
  Array.from({ length: count }, (_, index) => ({ id: String(from + index) }))

const poolOf = (options: Partial<WorkPoolOptions>): WorkPool<Task> =>
  createWorkPool({ workers: ['a', 'b'], topology: 'hierarchical', maySwitch: true, now: () => 0, ...options })

type Next = NonNullable<ReturnType<WorkPool<Task>['next']>>

/** Takes and finishes up to so many; the answer is which, and from whom. */
function take(pool: WorkPool<Task>, worker: string, count: number, durationMs = 10): Next[] {
  const done: Next[] = []
  for (let taken = pool.next(worker); taken; taken = done.length < count ? pool.next(worker) : null) {
    pool.done(worker, taken.task.id, durationMs, true)
    done.push(taken)
  }
  return done
}

const work = (...given: Parameters<typeof take>): string[] => take(...given).map(({ task }) => task.id)

/** The number that waits in the queue of each worker of a hierarchical pool: the workers take all, and fail at it. */
const waitingOf = (pool: WorkPool<Task>, workers = ['a', 'b']): number[] =>
  workers.map((worker) => {
    let count = 0
    for (let taken = pool.next(worker); taken; taken = pool.next(worker), count++)
      pool.done(worker, taken.task.id, 1, false)
    return count
  })

// Four tasks are dealt to a and b. Worker a works until it may take no more; worker b does nothing.
const ways: { name: string; options: Partial<WorkPoolOptions>; does: string[]; handed: string[] }[] = [
  {
    name: 'hierarchical: takes only its own tasks',
    options: { topology: 'hierarchical' },
    does: ['1', '3'],
    handed: [],
  },
  {
    name: 'mesh: takes its own tasks, then the other’s from the far end',
    options: { topology: 'mesh' },
    does: ['1', '3', '4', '2'],
    handed: ['4', '2'],
  },
  {
    name: 'mesh without stealing: takes only its own tasks',
    options: { topology: 'mesh', stealing: false },
    does: ['1', '3'],
    handed: [],
  },
  {
    name: 'star: takes all tasks in their order, without a handover',
    options: { topology: 'star' },
    does: ['1', '2', '3', '4'],
    handed: [],
  },
  {
    name: 'custom: takes tasks along an edge that leads to it',
    options: { topology: 'custom', edges: [['b', 'a']] },
    does: ['1', '3', '4', '2'],
    handed: ['4', '2'],
  },
  {
    name: 'custom: takes no tasks against an edge',
    options: { topology: 'custom', edges: [['a', 'b']] },
    does: ['1', '3'],
    handed: [],
  },
]

for (const { name, options, does, handed } of ways) {
  test(`an idle worker in ${name}`, () => {
    const pool = poolOf(options)
    pool.add(tasks(4))
    assert.deepEqual(
      take(pool, 'a', 10),
      does.map((id) => ({ task: { id }, handover: handed.includes(id) ? { from: 'b', to: 'a' } : null })),
    )
    assert.equal(pool.next('a'), null)
    assert.equal(pool.waiting(), 4 - does.length)
  })
}

test('an idle worker takes from the longest of the other queues first', () => {
  const pool = poolOf({ workers: ['a', 'b', 'c'], topology: 'mesh' })
  pool.add(tasks(9))
  work(pool, 'b', 1)
  work(pool, 'a', 3)
  assert.deepEqual(pool.next('a'), { task: { id: '9' }, handover: { from: 'c', to: 'a' } })
})

test('with edges a worker takes from the longest queue that leads to it, not from the longest of all', () => {
  const edges = [['b', 'a']] as const
  const pool = poolOf({ workers: ['a', 'b', 'c'], topology: 'custom', edges })
  pool.add(tasks(9))
  work(pool, 'b', 1)
  work(pool, 'a', 3)
  assert.equal(pool.next('a')?.handover?.from, 'b')
})

test('a worker does one task at a time, and an unknown worker gets no task', () => {
  const pool = poolOf({ topology: 'star' })
  pool.add(tasks(2))
  assert.equal(pool.next('a')?.task.id, '1')
  assert.equal(pool.next('a'), null)
  assert.equal(pool.next('z'), null)
  assert.equal(pool.waiting(), 1)
  assert.deepEqual(pool.idle(), ['b'])
})

test('a task that waits or runs is not added again; a task that is done may be', () => {
  const pool = poolOf({ topology: 'star' })
  pool.add(tasks(2))
  pool.next('a')
  pool.add(tasks(2))
  assert.equal(pool.waiting(), 1)
  pool.done('a', '1', 10, false)
  pool.add(tasks(2))
  assert.equal(pool.waiting(), 2)
})

test('equally fast workers get equal parts', () => {
  const pool = poolOf({ workers: ['a', 'b', 'c'] })
  pool.add(tasks(9))
  assert.deepEqual(waitingOf(pool, ['a', 'b', 'c']), [3, 3, 3])
})

for (const { name, batches, waiting } of [
  { name: 'as it is faster', batches: [10], waiting: [8, 2] },
  { name: 'with what it has to do already', batches: [10, 10], waiting: [16, 4] },
]) {
  test(`the faster worker gets as much more: ${name}`, () => {
    const pool = poolOf({})
    pool.add(tasks(2))
    work(pool, 'a', 1, 10)
    work(pool, 'b', 1, 40)
    for (const [place, count] of batches.entries()) pool.add(tasks(count, 3 + 10 * place))
    assert.deepEqual(waitingOf(pool), waiting)
  })
}

test('the task under way of a worker counts as much as a waiting task', () => {
  const pool = poolOf({})
  pool.add(tasks(1))
  pool.next('a')
  pool.add(tasks(3, 2))
  pool.done('a', '1', 1, false)
  assert.deepEqual(waitingOf(pool), [1, 2])
})

test('workers of different speeds get as many tasks as each can do in the same time', () => {
  const workers = Array.from({ length: 40 }, (_, index) => `w${index + 1}`)
  const paces = workers.map((_, index) => 10 + ((index * 17 + 5) % 40))
  const measured = (): WorkPool<Task> => {
    const pool = poolOf({ workers })
    pool.add(tasks(40))
    for (const [index, worker] of workers.entries()) work(pool, worker, 1, paces[index])
    pool.add(tasks(1, 41))
    return pool
  }
  assert.equal(waitingOf(measured(), workers).indexOf(1), paces.indexOf(10))
  const pool = measured()
  pool.add(tasks(1_999, 42))
  const through = waitingOf(pool, workers).map((waiting, index) => waiting * (paces[index] ?? 0))
  const oneMore = through.map((ms, index) => ms + (paces[index] ?? 0))
  assert.ok(Math.max(...through) <= Math.min(...oneMore), 'another worker would have finished sooner')
})

test('the speed of a worker is its recent speed', () => {
  const pool = poolOf({})
  pool.add(tasks(42))
  work(pool, 'a', 1, 10)
  work(pool, 'b', 1, 40)
  work(pool, 'a', 20, 400)
  work(pool, 'b', 20, 10)
  pool.add(tasks(10, 100))
  const [a = 0, b = 0] = waitingOf(pool)
  assert.ok(b > a, `${a} for the worker that became slow, ${b} for the worker that became fast`)
})

test('a worker that fails quickly does not count as fast', () => {
  const pool = poolOf({})
  pool.add(tasks(2))
  pool.next('a')
  pool.done('a', '1', 1, false)
  work(pool, 'b', 1, 40)
  pool.add(tasks(10, 3))
  assert.deepEqual(waitingOf(pool), [5, 5])
})

test('tasks that take no time at all are still shared', () => {
  const pool = poolOf({})
  pool.add(tasks(2))
  work(pool, 'a', 1, 0)
  work(pool, 'b', 1, 0)
  pool.add(tasks(10, 3))
  assert.deepEqual(waitingOf(pool), [5, 5])
})

test('a switch deals what waits anew, and leaves what runs', () => {
  let clockMs = 100
  const pool = poolOf({ now: () => clockMs++ })
  pool.add(tasks(6))
  pool.next('a')
  const change = pool.switchTo('star')
  assert.ok(change)
  const { switchMs, ...rest } = change
  assert.deepEqual(rest, { from: 'hierarchical', moved: 5 })
  assert.ok(switchMs > 0, `${switchMs}`)
  assert.deepEqual(work(pool, 'b', 10), ['2', '3', '4', '5', '6'])
  assert.equal(pool.done('a', '1', 10, true), true)
  assert.equal(pool.switchTo('star'), null)
})

test('a switch to one queue per worker gives faster workers more tasks', () => {
  const pool = poolOf({ topology: 'star' })
  pool.add(tasks(12))
  work(pool, 'a', 1, 10)
  work(pool, 'b', 1, 40)
  pool.switchTo('hierarchical')
  assert.deepEqual(waitingOf(pool), [8, 2])
})

// The pool first works under mesh, then under star, then has more waiting than it should.
for (const { name, mesh, star, to } of [
  { name: 'mesh was faster', mesh: { ms: 100, ok: true }, star: { ms: 1_000, ok: true }, to: 'mesh' },
  { name: 'mesh was slower', mesh: { ms: 1_000, ok: true }, star: { ms: 100, ok: true }, to: null },
  { name: 'a failed task does not count', mesh: { ms: 100, ok: false }, star: { ms: 1_000, ok: true }, to: null },
]) {
  test(`the measures of a topology decide whether to go back to it: ${name}`, () => {
    let clockMs = 0
    let added = 0
    const pool = poolOf({ topology: 'mesh', now: () => clockMs })
    const workAt = ({ ms, ok }: { ms: number; ok: boolean }): void => {
      for (let round = 0; round < 4; round++) {
        pool.add(tasks(2, added + 1))
        added += 2
        const taken = ['a', 'b'].map((worker) => ({ worker, id: pool.next(worker)?.task.id ?? '' }))
        clockMs += ms
        for (const { worker, id } of taken) pool.done(worker, id, ms, ok)
        // Nobody counts the time without work.
        clockMs += 60_000
      }
    }
    workAt(mesh)
    pool.switchTo('star')
    workAt(star)
    pool.add(tasks(40, added + 1))
    assert.equal(pool.check()?.to, to)
  })
}

/** Milliseconds until all tasks are done, on a clock of its own. */
function simulate(options: Partial<WorkPoolOptions>, durations: readonly number[]): number {
  let clockMs = 0
  const pool = poolOf({ ...options, workers: ['a', 'b', 'c', 'd'], now: () => clockMs })
  pool.add(tasks(durations.length))
  const underWay = new Map<string, { id: string; startedAtMs: number; endsAtMs: number }>()
  for (;;) {
    for (const name of pool.idle()) {
      const task = pool.next(name)?.task
      const durationMs = durations[Number(task?.id) - 1] ?? 0
      if (task) underWay.set(name, { id: task.id, startedAtMs: clockMs, endsAtMs: clockMs + durationMs })
    }
    const [first] = [...underWay].toSorted(([, one], [, other]) => one.endsAtMs - other.endsAtMs)
    if (!first) break
    const [name, { id, startedAtMs, endsAtMs }] = first
    clockMs = endsAtMs
    underWay.delete(name)
    pool.done(name, id, endsAtMs - startedAtMs, true)
  }
  assert.equal(pool.waiting(), 0)
  return clockMs
}

// Every fourth task is long, and all long tasks are dealt to the same worker.
const skewed = Array.from({ length: 100 }, (_, index) => (index % 4 === 0 ? 100 : 10))

for (const [name, even, uneven] of [
  ['mesh', { topology: 'mesh' }, { topology: 'mesh', stealing: false }],
  ['star', { topology: 'star' }, { topology: 'hierarchical' }],
  [
    'custom',
    { topology: 'custom', edges: ['b', 'c', 'd'].map((to) => ['a', to] as const) },
    { topology: 'hierarchical' },
  ],
] as const satisfies [string, Partial<WorkPoolOptions>, Partial<WorkPoolOptions>][]) {
  test(`a badly dealt load is done at least one and a half times sooner if idle workers help: ${name}`, () => {
    const [withHelp, alone] = [simulate(even, skewed), simulate(uneven, skewed)]
    assert.equal(alone, 2_500)
    assert.ok(withHelp * 1.5 <= alone, `${withHelp} ms with help, ${alone} ms without`)
  })
}

const all: Topology[] = ['hierarchical', 'mesh', 'star', 'custom']
for (const from of all) {
  for (const to of all.filter((topology) => topology !== from)) {
    test(`none of 10,000 tasks is lost or done twice: ${from} to ${to}`, () => {
      const workers = Array.from({ length: 8 }, (_, index) => `w${index + 1}`)
      const edges = workers.slice(1).map((worker) => ['w1', worker] as const)
      const pool = poolOf({ workers, edges, topology: from })
      pool.add(tasks(10_000))
      const done: string[] = []
      for (const worker of workers) done.push(...work(pool, worker, 20))
      const running = workers.map((worker) => ({ worker, id: pool.next(worker)?.task.id ?? '' }))
      assert.equal(pool.switchTo(to)?.moved, 10_000 - 8 * 21)
      for (const { worker, id } of running) {
        assert.ok(pool.done(worker, id, 10, true), `${worker} lost what it did`)
        done.push(id)
      }
      for (const worker of workers) done.push(...work(pool, worker, 10_000))
      assert.equal(done.length, 10_000)
      assert.equal(new Set(done).size, 10_000)
    })
  }
}
