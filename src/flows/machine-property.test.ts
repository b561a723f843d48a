// Random flow trees with failures and retries, played in random order and cut off at random, against a plain recursive
// reading of what the tree means.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { FlowNode } from '../kernel/flow.ts'
import { createMachine, type LeafOutcome, type LeafTask } from './machine.ts'
import type { Outcome } from './pattern.ts'

const TREES = 300

/** `fails`: how many of its first calls fail, in each life of the leaf. */
interface Behaviour {
  fails: number
}

const retry = fc.option(fc.record({ max_retries: fc.integer({ min: 0, max: 2 }), backoff: fc.constant(0) }), {
  nil: undefined,
})
const leaf = fc
  .record({ fails: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 3 })), retry })
  .map(({ fails, retry }): FlowNode => ({ type: 'task', function: `fails ${fails}`, ...(retry ? { retry } : {}) }))

const { tree } = fc.letrec<{ tree: FlowNode; inner: FlowNode }>((tie) => ({
  tree: fc.oneof({ maxDepth: 4, withCrossShrink: true }, leaf, tie('inner')),
  inner: fc.oneof(
    fc
      .record({ steps: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }), retry })
      .map(({ steps, retry }): FlowNode => ({ type: 'sequential', steps, ...(retry ? { retry } : {}) })),
    fc
      .record({ branches: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }), retry })
      .map(({ branches, retry }): FlowNode => ({ type: 'parallel', branches, ...(retry ? { retry } : {}) })),
    fc
      .record({ body: tie('tree'), max_iterations: fc.integer({ min: 1, max: 3 }) })
      .map(({ body, max_iterations }): FlowNode => ({ type: 'loop', body, max_iterations })),
  ),
}))

const behaviourOf = (node: FlowNode): Behaviour => ({
  fails: 'function' in node ? Number(String(node.function).split(' ')[1]) : 0,
})

/** What the tree means, read straight: a leaf adds one to how often it was passed, a failed one throws. */
function meaning(node: FlowNode, previous: unknown): Outcome {
  const attempts = 1 + (node.retry?.max_retries ?? 0)
  let outcome: Outcome = once(node, previous, 1)
  for (let attempt = 2; attempt <= attempts && outcome.status === 'failed'; attempt++) {
    outcome = once(node, previous, attempt)
  }
  return outcome
}

function once(node: FlowNode, previous: unknown, attempt: number): Outcome {
  switch (node.type) {
    case 'task':
      return attempt <= behaviourOf(node).fails ? failure : { status: 'completed', value: [previous], error: null }
    case 'sequential': {
      let value = previous
      let isPartial = false
      for (const step of node.steps) {
        const outcome = meaning(step, value)
        if (outcome.status === 'failed') return failure
        value = outcome.value
        isPartial ||= outcome.status === 'partial'
      }
      return { status: isPartial ? 'partial' : 'completed', value, error: null }
    }
    case 'parallel': {
      const outcomes = node.branches.map((branch) => meaning(branch, previous))
      if (outcomes.every((outcome) => outcome.status === 'failed')) return failure
      const value = outcomes.map((outcome) => (outcome.status === 'failed' ? null : outcome.value))
      const isWhole = outcomes.every((outcome) => outcome.status === 'completed')
      return { status: isWhole ? 'completed' : 'partial', value, error: null }
    }
    case 'loop': {
      let last: Outcome = failure
      let isPartial = false
      for (let iteration = 1, value = previous; iteration <= node.max_iterations; iteration++) {
        last = meaning(node.body, value)
        if (last.status === 'failed') return failure
        value = last.value
        isPartial ||= last.status === 'partial'
      }
      return isPartial ? { status: 'partial', value: last.value, error: null } : last
    }
    default:
      throw new Error(`there are no ${node.type} here`)
  }
}

const failure: Outcome = { status: 'failed', value: null, error: 'broken' }

/** Plays it from the start on top of what is on record; what is on record is not called again. */
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
  const take = (started: readonly LeafTask[]): void => {
    for (const task of started) {
      const known = record.get(nameOf(task))
      if (known) take(machine.settle(task.id, known))
      else open.push(task)
    }
  }
  take(machine.begin())
  for (let called = 0; open.length > 0 && called < stopAfter; called++) {
    const [task] = open.splice(next() % open.length, 1)
    if (!task) continue
    const isFailure = task.attempt <= behaviourOf(task.leaf).fails
    const outcome: LeafOutcome = isFailure
      ? { status: 'failed', error: 'broken' }
      : { status: 'completed', value: [task.argument] }
    calls.push(nameOf(task))
    record.set(nameOf(task), outcome)
    take(machine.settle(task.id, outcome))
  }
  return machine.outcome()
}

const comparable = (outcome: Outcome | null) => outcome && { status: outcome.status, value: outcome.value }

test('a flow ends as its tree means, in whatever order its leaves end, and goes on after any crash', () => {
  const property = fc.property(
    tree,
    fc.array(fc.nat(), { minLength: 1, maxLength: 50 }),
    fc.array(fc.nat(12), { maxLength: 4 }),
    (root, choices, crashes) => {
      let choice = 0
      const next = (): number => choices[choice++ % choices.length] ?? 0
      const expected = comparable(meaning(root, 0))
      assert.deepEqual(comparable(play(root, new Map(), [], next, Number.POSITIVE_INFINITY)), expected)
      const record = new Map<string, LeafOutcome>()
      const calls: string[] = []
      for (const stopAfter of crashes) play(root, record, calls, next, stopAfter)
      assert.deepEqual(comparable(play(root, record, calls, next, Number.POSITIVE_INFINITY)), expected)
      assert.equal(new Set(calls).size, calls.length, 'a finished leaf was called again')
    },
  )
  fc.assert(property, { numRuns: TREES })
})
