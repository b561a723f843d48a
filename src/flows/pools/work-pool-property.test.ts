// Random lives of pools: each added task is done once, however often the topology changes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { howMany, seeds } from '../../../test/kit/how-many.ts'
import { type Topology, topologies } from '../../kernel/flow.ts'
import { createPoolQueue } from './queue.ts'
import { createWorkPool } from './work-pool.ts'

const LIVES = howMany(500, 50_000)
const [seed = 0] = seeds(1)
const names = ['w1', 'w2', 'w3', 'w4', 'w5']

type Step =
  | { do: 'add'; count: number }
  | { do: 'next' | 'done' | 'stale'; worker: number; durationMs: number; ok: boolean }
  | { do: 'switch'; to: Topology }

const topology = fc.constantFrom(...topologies)
const ofWorker = (what: 'next' | 'done' | 'stale') =>
  fc.record({ do: fc.constant(what), worker: fc.nat(), durationMs: fc.nat(1_000), ok: fc.boolean() })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('add' as const), count: fc.nat(40) }) },
  { weight: 12, arbitrary: ofWorker('next') },
  { weight: 8, arbitrary: ofWorker('done') },
  { weight: 1, arbitrary: ofWorker('stale') },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('switch' as const), to: topology }) },
)
const life = fc.record({
  topology,
  stealing: fc.boolean(),
  workers: fc.subarray(names, { minLength: 1 }),
  edges: fc.uniqueArray(fc.tuple(fc.constantFrom(...names), fc.constantFrom(...names)), { selector: String }),
  steps: fc.array(step, { maxLength: 120 }),
})

test('every task is taken once, along what the topology allows', () => {
  const property = fc.property(life, ({ steps, ...options }) => {
    let clockMs = 0
    const pool = createWorkPool({ ...options, maySwitch: true, now: () => ++clockMs })
    const { edges, stealing } = options
    let current = options.topology
    let added = 0
    const crew = new Set(options.workers)
    const running = new Map<string, string>()
    const takes: string[] = []
    const done = new Set<string>()

    const take = (worker: string): void => {
      const taken = pool.next(worker)
      if (!taken) {
        const isFree = crew.has(worker) && !running.has(worker)
        const isOpenToAll = current === 'star' || (current === 'mesh' && stealing)
        if (isFree && isOpenToAll) assert.equal(pool.waiting(), 0, `${worker} was sent away from work`)
        return
      }
      assert.ok(crew.has(worker) && !running.has(worker), `${worker} may take nothing`)
      running.set(worker, taken.task.id)
      takes.push(taken.task.id)
      if (!taken.handover) return
      const { from, to } = taken.handover
      assert.equal(to, worker)
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
    const play = (step: Step): void => {
      switch (step.do) {
        case 'add':
          pool.add(Array.from({ length: step.count }, () => ({ id: String(++added) })))
          return
        case 'switch': {
          const waiting = pool.waiting()
          assert.equal(pool.switchTo(step.to)?.moved, step.to === current ? undefined : waiting)
          current = step.to
          return
        }
      }
      const worker = [...crew][step.worker % crew.size]
      if (worker === undefined) return
      if (step.do === 'next') take(worker)
      if (step.do === 'done') finish(worker, step.durationMs, step.ok)
      if (step.do === 'stale') assert.equal(pool.done(worker, 'another', step.durationMs, step.ok), false)
    }

    for (const step of steps) {
      play(step)
      assert.deepEqual(
        pool.idle(),
        [...crew].filter((worker) => !running.has(worker)),
      )
      assert.equal(pool.waiting() + running.size + done.size, added)
    }
    for (let before = -1; done.size > before; ) {
      before = done.size
      for (const worker of crew) {
        take(worker)
        finish(worker, 5, true)
      }
    }
    assert.equal(done.size, added, 'some tasks were never done')
    assert.equal(new Set(takes).size, takes.length, 'some were taken twice')
  })
  fc.assert(property, { numRuns: LIVES, seed })
})

test('a queue behaves like an array', () => {
  const end = fc.constantFrom('push', 'push', 'push', 'shift', 'pop', 'drain' as const)
  const property = fc.property(fc.array(end, { maxLength: 300 }), (calls) => {
    const queue = createPoolQueue<number>()
    let array: number[] = []
    for (const [index, call] of calls.entries()) {
      if (call === 'push') {
        queue.push(index)
        array.push(index)
      } else if (call === 'drain') {
        // The queue is drained seldom, or it never gets long.
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
