// Random lives of pools: each added task is done once, whichever workers die and however often the topology changes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { howMany, seeds } from '../../test/kit/how-many.ts'
import { type Topology, topologies } from '../kernel/flow.ts'
import { createPoolQueue } from './pool-queue.ts'
import { createWorkPool } from './work-pool.ts'

const LIVES = howMany(500, 50_000)
const [seed = 0] = seeds(1)
const names = ['w1', 'w2', 'w3', 'w4', 'w5']

type Step =
  | { do: 'add'; count: number }
  | { do: 'next' | 'done' | 'lost' | 'stale'; worker: number; durationMs: number; ok: boolean }
  | { do: 'switch'; to: Topology }
  | { do: 'hire'; count: number }

const topology = fc.constantFrom(...topologies)
const ofWorker = (what: 'next' | 'done' | 'lost' | 'stale') =>
  fc.record({ do: fc.constant(what), worker: fc.nat(), durationMs: fc.nat(1_000), ok: fc.boolean() })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('add' as const), count: fc.nat(40) }) },
  { weight: 12, arbitrary: ofWorker('next') },
  { weight: 8, arbitrary: ofWorker('done') },
  { weight: 1, arbitrary: ofWorker('lost') },
  { weight: 1, arbitrary: ofWorker('stale') },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('switch' as const), to: topology }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('hire' as const), count: fc.integer({ min: 1, max: 3 }) }) },
)
const life = fc.record({
  topology,
  stealing: fc.boolean(),
  workers: fc.subarray(names, { minLength: 1 }),
  edges: fc.uniqueArray(fc.tuple(fc.constantFrom(...names), fc.constantFrom(...names)), { selector: String }),
  steps: fc.array(step, { maxLength: 120 }),
})

test('every task is taken once, and once more for each time its worker was lost, along what the topology allows', () => {
  const property = fc.property(life, ({ steps, ...options }) => {
    let clockMs = 0
    const pool = createWorkPool({ ...options, maySwitch: true, now: () => ++clockMs })
    const { edges, stealing } = options
    let current = options.topology
    let added = 0
    let handed = 0
    const crew = new Set(options.workers)
    const running = new Map<string, string>()
    const takes = new Map<string, number>()
    const losses = new Map<string, number>()
    const done = new Set<string>()
    const count = (counts: Map<string, number>, id: string): void => void counts.set(id, (counts.get(id) ?? 0) + 1)

    const take = (worker: string): void => {
      const taken = pool.next(worker)
      if (!taken) {
        const isFree = crew.has(worker) && !running.has(worker)
        const isOpenToAll = current === 'star' || (current === 'mesh' && stealing)
        if (isFree && isOpenToAll) assert.equal(pool.state().waiting, 0, `${worker} was sent away from work`)
        return
      }
      assert.ok(crew.has(worker) && !running.has(worker), `${worker} may take nothing`)
      running.set(worker, taken.task.id)
      count(takes, taken.task.id)
      if (!taken.handover) return
      handed++
      const { task_id, from, to } = taken.handover
      assert.deepEqual([task_id, to], [taken.task.id, worker])
      assert.ok(from !== to && crew.has(from) && stealing)
      assert.ok(
        current === 'mesh' || (current === 'custom' && edges.some((edge) => edge[0] === from && edge[1] === to)),
        `${current} handed over from ${from} to ${to}`,
      )
    }
    const finish = (worker: string, durationMs: number, ok: boolean): void => {
      const id = running.get(worker)
      if (id === undefined) return
      assert.ok(!done.has(id), `${id} was done twice`)
      assert.ok(pool.done(worker, id, durationMs, ok))
      running.delete(worker)
      done.add(id)
    }
    const hire = (howMany: number): void => {
      for (const name of pool.addWorkers(howMany)) {
        assert.ok(!crew.has(name))
        crew.add(name)
      }
    }
    const play = (step: Step): void => {
      switch (step.do) {
        case 'add':
          pool.add(Array.from({ length: step.count }, () => ({ id: String(++added) })))
          return
        case 'switch': {
          const { waiting } = pool.state()
          assert.equal(pool.switchTo(step.to, 'chance')?.moved, step.to === current ? undefined : waiting)
          current = step.to
          return
        }
        case 'hire':
          hire(step.count)
          return
      }
      const worker = [...crew][step.worker % crew.size]
      if (worker === undefined) return
      if (step.do === 'next') take(worker)
      if (step.do === 'done') finish(worker, step.durationMs, step.ok)
      if (step.do === 'stale') assert.equal(pool.done(worker, 'another', step.durationMs, step.ok), false)
      if (step.do !== 'lost') return
      const id = running.get(worker)
      assert.equal(pool.lost(worker)?.id, id)
      if (id !== undefined) count(losses, id)
      running.delete(worker)
      crew.delete(worker)
    }

    for (const step of steps) {
      play(step)
      const state = pool.state()
      assert.equal(state.running, running.size)
      assert.equal(state.waiting + state.running + done.size, added)
    }
    if (crew.size === 0) hire(1)
    for (let before = -1; done.size > before; ) {
      before = done.size
      for (const worker of crew) {
        take(worker)
        finish(worker, 5, true)
      }
    }
    assert.equal(done.size, added, 'some were never done')
    for (const id of done) assert.equal(takes.get(id), 1 + (losses.get(id) ?? 0), `${id} was taken too often`)
    assert.equal(pool.state().handovers.length, handed)
  })
  fc.assert(property, { numRuns: LIVES, seed })
})

test('a queue does what an array does', () => {
  const end = fc.constantFrom('push', 'push', 'unshift', 'shift', 'pop', 'drain' as const)
  const property = fc.property(fc.array(end, { maxLength: 300 }), (calls) => {
    const queue = createPoolQueue<number>()
    let array: number[] = []
    for (const [index, call] of calls.entries()) {
      if (call === 'push' || call === 'unshift') {
        queue[call](index)
        array[call](index)
      } else if (call === 'drain') {
        // Seldom, or it never gets long.
        if (index % 7 > 0) continue
        assert.deepEqual(queue.drain(), array)
        array = []
      } else assert.equal(queue[call](), array[call]())
      assert.equal(queue.length, array.length)
    }
    assert.deepEqual(queue.drain(), array)
  })
  fc.assert(property, { numRuns: LIVES, seed })
})
