import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Topology } from '../kernel/flow.ts'
import { createWorkPool, type WorkPool, type WorkPoolOptions } from './work-pool.ts'

interface Task {
  id: string
}

const tasks = (count: number, from = 1): Task[] =>
  Array.from({ length: count }, (_, index) => ({ id: String(from + index) }))

const poolOf = (options: Partial<WorkPoolOptions>): WorkPool<Task> =>
  createWorkPool({ workers: ['a', 'b'], topology: 'hierarchical', maySwitch: true, now: () => 0, ...options })

/** Takes and finishes up to so many; the answer is which. */
function work(pool: WorkPool<Task>, worker: string, count: number, durationMs = 10): string[] {
  const done: string[] = []
  for (let taken = pool.next(worker); taken; taken = done.length < count ? pool.next(worker) : null) {
    pool.done(worker, taken.task.id, durationMs, true)
    done.push(taken.task.id)
  }
  return done
}

const waitingOf = (pool: WorkPool<Task>): number[] => pool.state().workers.map(({ waiting }) => waiting)

// Four tasks for a and b; a works until it may take no more, b does nothing.
const ways: { name: string; options: Partial<WorkPoolOptions>; does: string[]; handed: string[] }[] = [
  { name: 'hierarchical: only its own', options: { topology: 'hierarchical' }, does: ['1', '3'], handed: [] },
  {
    name: 'mesh: its own, then the other’s from the far end',
    options: { topology: 'mesh' },
    does: ['1', '3', '4', '2'],
    handed: ['4', '2'],
  },
  {
    name: 'mesh without stealing: only its own',
    options: { topology: 'mesh', stealing: false },
    does: ['1', '3'],
    handed: [],
  },
  {
    name: 'star: all, in their order, and nothing is handed over',
    options: { topology: 'star' },
    does: ['1', '2', '3', '4'],
    handed: [],
  },
  {
    name: 'custom: along an edge that leads to it',
    options: { topology: 'custom', edges: [['b', 'a']] },
    does: ['1', '3', '4', '2'],
    handed: ['4', '2'],
  },
  {
    name: 'custom: not against an edge',
    options: { topology: 'custom', edges: [['a', 'b']] },
    does: ['1', '3'],
    handed: [],
  },
]

for (const { name, options, does, handed } of ways) {
  test(`what an idle worker does: ${name}`, () => {
    const pool = poolOf({ ...options, now: () => 7 })
    pool.add(tasks(4))
    assert.deepEqual(work(pool, 'a', 10), does)
    assert.equal(pool.next('a'), null)
    assert.deepEqual(
      pool.state().handovers,
      handed.map((task_id) => ({ task_id, from: 'b', to: 'a', at: 7 })),
    )
    assert.equal(pool.state().waiting, 4 - does.length)
  })
}

test('the longest of the other queues is helped first', () => {
  const pool = poolOf({ workers: ['a', 'b', 'c'], topology: 'mesh' })
  pool.add(tasks(9))
  work(pool, 'b', 1)
  work(pool, 'a', 3)
  assert.deepEqual(pool.next('a'), { task: { id: '9' }, handover: { task_id: '9', from: 'c', to: 'a', at: 0 } })
})

test('by edges the longest of those that lead to the worker is helped, not the longest of all', () => {
  const edges = [['b', 'a']] as const
  const pool = poolOf({ workers: ['a', 'b', 'c'], topology: 'custom', edges })
  pool.add(tasks(9))
  work(pool, 'b', 1)
  work(pool, 'a', 3)
  assert.equal(pool.next('a')?.handover?.from, 'b')
})

test('a worker does one task at a time, and one nobody knows does none', () => {
  const pool = poolOf({ topology: 'star' })
  pool.add(tasks(2))
  assert.equal(pool.next('a')?.task.id, '1')
  assert.equal(pool.next('a'), null)
  assert.equal(pool.next('z'), null)
  assert.deepEqual([pool.state().waiting, pool.state().running], [1, 1])
})

test('a task that waits or runs is not added again; one that is done may be', () => {
  const pool = poolOf({ topology: 'star' })
  pool.add(tasks(2))
  pool.next('a')
  pool.add(tasks(2))
  assert.equal(pool.state().waiting, 1)
  pool.done('a', '1', 10, false)
  pool.add(tasks(2))
  assert.equal(pool.state().waiting, 2)
})

test('equal workers get equal parts', () => {
  const pool = poolOf({ workers: ['a', 'b', 'c'] })
  pool.add(tasks(9))
  assert.deepEqual(waitingOf(pool), [3, 3, 3])
})

test('the faster worker gets as much more as it is faster, and what it has to do already counts', () => {
  const pool = poolOf({})
  pool.add(tasks(2))
  work(pool, 'a', 1, 10)
  work(pool, 'b', 1, 40)
  pool.add(tasks(10, 3))
  assert.deepEqual(waitingOf(pool), [8, 2])
  pool.add(tasks(10, 13))
  assert.deepEqual(waitingOf(pool), [16, 4])
})

test('what a worker is doing counts as much as what waits for it', () => {
  const pool = poolOf({})
  pool.add(tasks(1))
  pool.next('a')
  pool.add(tasks(3, 2))
  assert.deepEqual(waitingOf(pool), [1, 2])
})

test('of many workers of different speeds each gets what it can do in the same time', () => {
  const workers = Array.from({ length: 40 }, (_, index) => `w${index + 1}`)
  const pool = poolOf({ workers })
  pool.add(tasks(40))
  const paces = workers.map((worker, index) => {
    const paceMs = 10 + ((index * 17 + 5) % 40)
    work(pool, worker, 1, paceMs)
    return paceMs
  })
  pool.add(tasks(1, 41))
  assert.equal(waitingOf(pool).indexOf(1), paces.indexOf(10))
  pool.add(tasks(1_999, 42))
  const through = waitingOf(pool).map((waiting, index) => waiting * (paces[index] ?? 0))
  const oneMore = through.map((ms, index) => ms + (paces[index] ?? 0))
  assert.ok(Math.max(...through) <= Math.min(...oneMore), 'somebody else would have been through sooner')
})

test('a speed is that of late', () => {
  const pool = poolOf({})
  pool.add(tasks(42))
  work(pool, 'a', 1, 10)
  work(pool, 'b', 1, 40)
  work(pool, 'a', 20, 400)
  work(pool, 'b', 20, 10)
  pool.add(tasks(10, 100))
  const [a = 0, b = 0] = waitingOf(pool)
  assert.ok(b > a, `${a} for the one that became slow, ${b} for the one that became fast`)
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

for (const topology of ['hierarchical', 'mesh', 'star', 'custom'] as const) {
  test(`${topology}: what a lost worker did is done next by another, what waited for it is dealt, and it is heard no more`, () => {
    const pool = poolOf({ topology, edges: [['a', 'b']] })
    pool.add(tasks(6))
    const taken = pool.next('a')
    assert.deepEqual(pool.lost('a'), taken?.task)
    assert.equal(pool.lost('a'), null)
    assert.equal(pool.done('a', '1', 10, true), false)
    assert.equal(pool.next('a'), null)
    const done = work(pool, 'b', 10)
    assert.equal(done[0], '1')
    assert.deepEqual(done.toSorted(), ['1', '2', '3', '4', '5', '6'])
    assert.deepEqual(pool.state().handovers, [])
  })

  test(`${topology}: with nobody left the work waits for the next who comes`, () => {
    const pool = poolOf({ topology, workers: ['w1'] })
    pool.add(tasks(3))
    pool.next('w1')
    pool.lost('w1')
    pool.add(tasks(1, 4))
    assert.equal(pool.state().waiting, 4)
    assert.deepEqual(pool.addWorkers(1), ['w2'])
    assert.deepEqual(work(pool, 'w2', 10), ['1', '2', '3', '4'])
  })
}

test('a worker that is gone may come back by its name', () => {
  const pool = poolOf({})
  pool.add(tasks(4))
  pool.lost('a')
  assert.deepEqual(pool.addWorkers(['a', 'b']), ['a'])
  assert.deepEqual(waitingOf(pool), [2, 2])
})

const newcomers: { name: string; options: Partial<WorkPoolOptions>; waiting: number[] }[] = [
  { name: 'hierarchical: they get their share', options: {}, waiting: [3, 3, 3, 3] },
  { name: 'mesh: they get their share', options: { topology: 'mesh' }, waiting: [3, 3, 3, 3] },
  { name: 'star: they pull from the hub', options: { topology: 'star' }, waiting: [0, 0, 0, 0] },
  {
    name: 'where nothing leaves its queue they wait for what comes',
    options: { topology: 'mesh', stealing: false },
    waiting: [6, 6, 0, 0],
  },
]
for (const { name, options, waiting } of newcomers) {
  test(`workers who come later: ${name}`, () => {
    const pool = poolOf(options)
    pool.add(tasks(12))
    assert.deepEqual(pool.addWorkers(2), ['w3', 'w4'])
    assert.deepEqual(waitingOf(pool), waiting)
    assert.equal(pool.state().waiting, 12)
  })
}

test('a switch deals what waits anew, leaves what runs, and is on record', () => {
  let clockMs = 100
  const pool = poolOf({ now: () => clockMs++ })
  pool.add(tasks(6))
  pool.next('a')
  const change = pool.switchTo('star', 'asked for')
  assert.ok(change)
  const { at, switchMs, ...rest } = change
  assert.deepEqual(rest, { from: 'hierarchical', to: 'star', reason: 'asked for', moved: 5 })
  assert.ok(at >= 100 && switchMs > 0, `${at} ${switchMs}`)
  assert.deepEqual(pool.state().history, [change])
  assert.equal(pool.state().current, 'star')
  assert.deepEqual(work(pool, 'b', 10), ['2', '3', '4', '5', '6'])
  assert.equal(pool.done('a', '1', 10, true), true)
  assert.equal(pool.switchTo('star', 'once more'), null)
  assert.equal(pool.state().history.length, 1)
})

test('a switch to queues of their own weighs who is faster', () => {
  const pool = poolOf({ topology: 'star' })
  pool.add(tasks(12))
  work(pool, 'a', 1, 10)
  work(pool, 'b', 1, 40)
  pool.switchTo('mesh', '')
  assert.deepEqual(waitingOf(pool), [8, 2])
})

test('what is measured is told apart by topology, over the time in which there was work', () => {
  let clockMs = 0
  const pool = poolOf({ topology: 'mesh', now: () => clockMs })
  const step = (ms: number): void => {
    clockMs += ms
    for (const worker of ['a', 'b']) {
      const { running } = pool.state().workers.find(({ name }) => name === worker) ?? {}
      if (running) pool.done(worker, running, ms, true)
    }
  }
  const takeBoth = (): void => void [pool.next('a'), pool.next('b')]
  clockMs = 5_000
  pool.add(tasks(4))
  takeBoth()
  step(100)
  takeBoth()
  step(100)
  clockMs += 60_000
  pool.switchTo('star', '')
  pool.add(tasks(2, 5))
  clockMs += 50
  takeBoth()
  step(200)
  clockMs += 60_000
  assert.deepEqual(pool.state().byTopology, {
    mesh: { tasks: 4, throughput: 20, wait: 50, duration: 100 },
    star: { tasks: 2, throughput: 8, wait: 50, duration: 200 },
  })
})

test('a switch while there is work divides the time', () => {
  let clockMs = 0
  const pool = poolOf({ topology: 'mesh', now: () => clockMs })
  pool.add(tasks(3))
  for (const topology of ['star', 'custom', 'hierarchical'] as const) {
    const taken = pool.next('a') ?? pool.next('b')
    clockMs += 500
    pool.done('a', taken?.task.id ?? '', 500, true)
    pool.done('b', taken?.task.id ?? '', 500, true)
    pool.switchTo(topology, '')
  }
  const { byTopology } = pool.state()
  assert.deepEqual([byTopology.mesh?.throughput, byTopology.star?.throughput, byTopology.custom?.throughput], [2, 2, 2])
})

test('a failed task is no throughput', () => {
  let clockMs = 0
  const pool = poolOf({ topology: 'star', now: () => clockMs })
  pool.add(tasks(2))
  work(pool, 'a', 1, 1_000)
  pool.next('b')
  clockMs = 1_000
  pool.done('b', '2', 1, false)
  assert.deepEqual(pool.state().byTopology, { star: { tasks: 1, throughput: 1, wait: 0, duration: 1_000 } })
})

/** Milliseconds until all is done, on a clock of its own. */
function simulate(options: Partial<WorkPoolOptions>, durations: readonly number[]): number {
  let clockMs = 0
  const pool = poolOf({ ...options, workers: ['a', 'b', 'c', 'd'], now: () => clockMs })
  pool.add(tasks(durations.length))
  const underWay = new Map<string, { id: string; startedAtMs: number; endsAtMs: number }>()
  for (;;) {
    for (const { name } of pool.state().workers) {
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
  assert.equal(pool.state().waiting, 0)
  return clockMs
}

// Every fourth is long, and all of those are dealt to the same worker.
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
  test(`a badly dealt load is done at least one and a half times sooner where idle workers help: ${name}`, () => {
    const [withHelp, alone] = [simulate(even, skewed), simulate(uneven, skewed)]
    assert.equal(alone, 2_500)
    assert.ok(withHelp * 1.5 <= alone, `${withHelp} ms with help, ${alone} ms without`)
  })
}

const all: Topology[] = ['hierarchical', 'mesh', 'star', 'custom']
for (const from of all) {
  for (const to of all.filter((topology) => topology !== from)) {
    test(`of 10,000 tasks none is lost and none done twice: ${from} to ${to}`, () => {
      const workers = Array.from({ length: 8 }, (_, index) => `w${index + 1}`)
      const edges = workers.slice(1).map((worker) => ['w1', worker] as const)
      const pool = poolOf({ workers, edges, topology: from })
      pool.add(tasks(10_000))
      const done: string[] = []
      for (const worker of workers) done.push(...work(pool, worker, 20))
      for (const worker of workers) pool.next(worker)
      assert.equal(pool.switchTo(to, 'tried')?.moved, 10_000 - 8 * 21)
      for (const { name, running } of pool.state().workers) {
        assert.ok(running !== null && pool.done(name, running, 10, true), `${name} lost what it did`)
        done.push(running)
      }
      for (const worker of workers) done.push(...work(pool, worker, 10_000))
      assert.equal(done.length, 10_000)
      assert.equal(new Set(done).size, 10_000)
    })
  }
}
