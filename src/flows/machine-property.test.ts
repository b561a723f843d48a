// Random flow trees with failures and retries, played in random order and cut off at random, against a plain recursive
// reading of the tree's meaning.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { callTreeFunction, flowTrees, meaningOf } from '../../test/kit/flow-tree.ts'
import { howMany, seeds } from '../../test/kit/how-many.ts'
import type { FlowNode } from '../kernel/flow.ts'
import { createMachine, type LeafOutcome, type LeafTask } from './machine.ts'

/** Plays the tree from the start on top of the record; leaves on record are not called again. */
function play(
  root: FlowNode,
  record: Map<string, LeafOutcome>,
  calls: string[],
  next: () => number,
  stopAfter: number,
) {
  const machine = createMachine(root, 0)
  const open: LeafTask[] = []
  const nameOf = ({ id, attempt }: LeafTask): string => `${id} ${attempt}`
  const begun = new Set<string>()
  const take = (started: readonly LeafTask[]): void => {
    for (const task of started) {
      assert.ok(!begun.has(nameOf(task)), `${nameOf(task)} stands for two leaves`)
      begun.add(nameOf(task))
      const known = record.get(nameOf(task))
      if (known) take(machine.settle(task.id, known))
      else open.push(task)
    }
  }
  take(machine.begin())
  for (let called = 0; open.length > 0 && called < stopAfter; called++) {
    const [task] = open.splice(next() % open.length, 1)
    if (!task) continue
    const outcome = call(task)
    calls.push(nameOf(task))
    record.set(nameOf(task), outcome)
    take(machine.settle(task.id, outcome))
  }
  return machine.outcome()
}

function call({ leaf, attempt, isEach, calls, argumentOf }: LeafTask): LeafOutcome {
  const name = 'function' in leaf ? leaf.function : assert.fail('there are no agents here')
  const one = (given: unknown): unknown => callTreeFunction(name, given, attempt)
  try {
    return {
      status: 'completed',
      value: isEach ? Array.from({ length: calls }, (_, place) => one(argumentOf(place))) : one(argumentOf(0)),
    }
  } catch {
    return { status: 'failed', error: 'broken' }
  }
}

for (const seed of seeds(howMany(1, 100))) {
  test(`a flow ends as its tree means, in whatever order its leaves end, and goes on after any crash (MUSTER_TEST_SEED=${seed})`, () => {
    const property = fc.property(
      flowTrees,
      fc.array(fc.nat(), { minLength: 1, maxLength: 50 }),
      fc.array(fc.nat(12), { maxLength: 4 }),
      (root, choices, crashes) => {
        let choice = 0
        const next = (): number => choices[choice++ % choices.length] ?? 0
        const { status, value } = meaningOf(root, 0)
        const playedTo = (record: Map<string, LeafOutcome>, calls: string[]): void => {
          const outcome = play(root, record, calls, next, Number.POSITIVE_INFINITY)
          assert.deepEqual([outcome?.status, outcome?.value], [status, value])
        }
        playedTo(new Map(), [])
        const record = new Map<string, LeafOutcome>()
        const calls: string[] = []
        for (const stopAfter of crashes) play(root, record, calls, next, stopAfter)
        playedTo(record, calls)
        assert.equal(new Set(calls).size, calls.length, 'a finished leaf was called again')
      },
    )
    fc.assert(property, { numRuns: 300, seed })
  })
}
