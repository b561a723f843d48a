// Random flow trees with failures and retries, played in random order and cut off at random, against a plain recursive
// reading of the tree's meaning. Then flows of a pattern that answers any move at all: a flow run neither hangs nor
// leaves anything behind, whatever a pattern does.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { callTreeFunction, flowTrees, meaningOf } from '../../../test/kit/flow-tree.ts'
import { howMany, seeds } from '../../../test/kit/how-many.ts'
import { type FlowNode, isLeaf, type PatternNode } from '../../kernel/flow.ts'
import { type BuiltInNode, builtInPatterns } from './built-in-patterns.ts'
import type { FlowLeaf } from './flow-leaf.ts'
import { createMachine, type LeafOutcome, type Machine } from './machine.ts'
import { callOf, completed, failed, type Move, type NodeState } from './move.ts'
import { createPatterns, type Pattern } from './pattern.ts'

/** Plays the tree from the start on top of the record. Leaves on record are not called again. */
function play(
  root: BuiltInNode,
  record: Map<string, LeafOutcome>,
  calls: string[],
  next: () => number,
  stopAfter: number,
) {
  const machine = createMachine(root, 0, builtInPatterns)
  const open: FlowLeaf[] = []
  const nameOf = ({ id, attempt }: FlowLeaf): string => `${id} ${attempt}`
  const begun = new Set<string>()
  const take = (started: readonly FlowLeaf[]): void => {
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

function call({ node, attempt, isEach, calls, argumentOf }: FlowLeaf): LeafOutcome {
  const name = 'function' in node ? node.function : assert.fail('there are no agents here')
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
  test(`a flow ends as its tree means, in any order of its leaves and after any crash (MUSTER_TEST_SEED=${seed})`, () => {
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

/** A pattern whose moves are drawn at random. `place` counts among the keys of the node, those it never used included. */
interface Wild extends PatternNode {
  type: 'wild'
  moves: readonly WildMove[]
}
type WildMove =
  | { start: readonly WildChild[]; drop: readonly number[]; watch: readonly number[] }
  | 'wait'
  | 'end'
  | 'fail'
  | 'throw'
interface WildChild {
  place: number
  node: FlowNode
  isOwn: boolean
}

const MOST_CHILDREN = 8

/** Answers as its state says, so that a replay answers the same. */
function nextOfWild({ node, children, slow, open }: NodeState<Wild>): Move {
  const move = node.moves[(children.size + open + 3 * slow.size) % node.moves.length] ?? 'end'
  if (move === 'throw') throw new Error('thrown')
  if (move === 'fail') return { end: failed('failed') }
  if (move === 'end' || children.size > MOST_CHILDREN) return { end: completed([...children.keys()]) }
  if (move === 'wait') return move
  const { start, drop, watch } = move
  return {
    start: start.map(({ place, isOwn, ...child }) => ({
      key: String(children.size + place),
      previous: null,
      ...child,
      ...(isOwn ? { isOwn } : {}),
    })),
    drop: drop.map(String),
    watch: watch.map((place) => ({ key: String(place), ms: 1 })),
  }
}

const wild: Pattern<Wild> = {
  type: 'wild',
  schema: z.unknown(),
  next: nextOfWild,
  parts: () => [],
  expectedMs: () => 0,
}
const withWild = createPatterns([...builtInPatterns.all, wild])

const place = fc.nat(MOST_CHILDREN)
const shared = fc.record(
  {
    id: fc.constantFrom('a', 'b', 'c', 'd'),
    retry: fc.record({ max_retries: fc.nat(2), backoff: fc.constant(0) }),
  },
  { requiredKeys: [] },
)
/** A node of these trees, or of the nodes within it. */
interface Nested extends PatternNode {
  moves?: readonly WildMove[]
  steps?: readonly FlowNode[]
}

/** No node has the name of a node around it: the check of a flow refuses that. */
function withOwnNames(node: FlowNode, depth = 0): FlowNode {
  const name = node.id === undefined ? {} : { id: `${node.id}${depth}` }
  if (isLeaf(node)) return { ...node, ...name }
  const { moves, steps, ...own }: Nested = node
  const inner = (child: FlowNode): FlowNode => withOwnNames(child, depth + 1)
  return {
    ...own,
    ...name,
    ...(steps && { steps: steps.map(inner) }),
    ...(moves && {
      moves: moves.map((move) =>
        typeof move === 'string'
          ? move
          : { ...move, start: move.start.map((child) => ({ ...child, node: inner(child.node) })) },
      ),
    }),
  }
}

const { node: anyNode } = fc.letrec<{ node: FlowNode; leaf: FlowNode; wild: Wild; sequence: FlowNode }>((tie) => ({
  leaf: shared.map((given) => ({ ...callOf('any'), ...given })),
  wild: fc
    .tuple(
      shared,
      fc.option(fc.constant(1_000), { nil: undefined }),
      fc.array(
        fc.oneof(fc.constantFrom('wait' as const, 'end' as const, 'fail' as const, 'throw' as const), {
          weight: 6,
          arbitrary: fc.record({
            start: fc.array(fc.record({ place: fc.nat(3), node: tie('node'), isOwn: fc.boolean() }), { maxLength: 4 }),
            drop: fc.array(place, { maxLength: 5 }),
            watch: fc.array(place, { maxLength: 3 }),
          }),
        }),
        { minLength: 1, maxLength: 5 },
      ),
    )
    .map(([given, timeout, moves]) => ({ type: 'wild', ...given, ...(timeout ? { timeout } : {}), moves })),
  sequence: fc.array(tie('node'), { minLength: 1, maxLength: 3 }).map((steps) => ({ type: 'sequential', steps })),
  node: fc.oneof({ maxDepth: 3 }, { weight: 3, arbitrary: tie('leaf') }, tie('wild'), tie('sequence')),
}))
const wildNode = anyNode.map((node) => withOwnNames(node))

const open = (root: FlowNode): Machine => {
  const machine = createMachine(root, null, withWild)
  machine.begin()
  return machine
}
const droppedOf = (machine: Machine): string[] => machine.dropped().map(({ id }) => id)
const two = [0, 1].map((place) => ({ place, isOwn: true, node: { ...callOf('any'), id: `leaf ${place}` } }))
const done: LeafOutcome = { status: 'completed', value: null }

test('a pattern that ends drops its children under way', () => {
  const machine = open({ type: 'wild', moves: [{ start: two, drop: [], watch: [] }, 'wait', 'wait', 'end'] } as Wild)
  machine.settle('leaf 0', done)
  assert.deepEqual([machine.outcome()?.status, droppedOf(machine)], ['completed', ['leaf 1']])
})

test('a pattern that drops all its children is asked again; one that then waits for nothing has failed', () => {
  const dropAll = { start: [], drop: [0, 1], watch: [] }
  const moves = (last: WildMove): Wild => ({
    type: 'wild',
    moves: [{ start: two, drop: [], watch: [] }, 'wait', last, dropAll, 'end'],
  })
  for (const [last, status] of [['end', 'completed'] as const, ['wait', 'failed'] as const]) {
    const machine = open(moves(last))
    machine.settle('leaf 0', done)
    assert.deepEqual([machine.outcome()?.status, droppedOf(machine)], [status, ['leaf 1']])
  }
})

test('a child with a name of its own and a child with children can be dropped', () => {
  const inner: FlowNode = { type: 'sequential', steps: [callOf('any')] } as FlowNode
  const start = [...two, { place: 2, isOwn: false, node: inner }]
  const moves: WildMove[] = ['wait', 'wait', 'wait', 'end', { start: [], drop: [1, 2], watch: [] }]
  const machine = open({ type: 'wild', moves: [{ start, drop: [], watch: [] }, ...moves] } as Wild)
  machine.settle('leaf 0', done)
  assert.deepEqual(droppedOf(machine), ['leaf 1', 'root/2/0'])
})

type Happening =
  | { kind: 'settle'; id: string; outcome: LeafOutcome }
  | { kind: 'slow'; id: string }
  | { kind: 'expire'; id: string }

function apply(machine: Machine, happening: Happening): FlowLeaf[] {
  if (happening.kind === 'settle') return machine.settle(happening.id, happening.outcome)
  return happening.kind === 'slow' ? machine.slow(happening.id) : machine.expire(happening.id)
}

/** Plays a flow to its end, and checks after every call that the machine has told all, and nothing twice. */
function playWild(root: FlowNode, next: () => number): { happenings: Happening[]; told: unknown[] } {
  const machine = createMachine(root, null, withWild)
  const open = new Map<string, FlowLeaf>()
  const begun = new Set<string>()
  const timed = new Set<string>()
  const told: unknown[] = []
  const take = (started: readonly FlowLeaf[]): void => {
    for (const leaf of machine.dropped()) assert.ok(open.delete(leaf.id), `${leaf.id} is dropped, and is not under way`)
    for (const { id, attempt, ...leaf } of started) {
      assert.ok(!begun.has(`${id} ${attempt}`) && !open.has(id), `${id} ${attempt} stands for two leaves`)
      begun.add(`${id} ${attempt}`)
      open.set(id, { id, attempt, ...leaf })
    }
    for (const { id } of machine.armed()) timed.add(id)
    for (const id of timed) if (!machine.isTimed(id)) timed.delete(id)
    const outcome = machine.outcome()
    assert.equal(outcome === null, open.size > 0, 'a flow is under way exactly as long as one of its leaves is')
    if (outcome) assert.equal(timed.size, 0, 'no time runs after the end')
    for (const id of machine.watched().keys()) assert.ok(open.has(id), `${id} is watched, and is not under way`)
    told.push([started.map(({ id, attempt }) => [id, attempt]), outcome])
  }
  take(machine.begin())
  const happenings: Happening[] = []
  for (let calls = 0; open.size > 0; calls++) {
    assert.ok(calls < 5_000, 'the flow goes on without end')
    // In a real flow every leaf ends, however often it is slow before: after a while the leaves only end.
    const happening = draw(calls < 1_000 ? machine : null, [...open.keys()], [...timed], next)
    if (happening.kind === 'settle') open.delete(happening.id)
    happenings.push(happening)
    take(apply(machine, happening))
  }
  return { happenings, told }
}

function draw(
  machine: Machine | null,
  open: readonly string[],
  timed: readonly string[],
  next: () => number,
): Happening {
  const pick = (ids: readonly string[]): string => ids[next() % ids.length] ?? ''
  const watched = [...(machine?.watched().keys() ?? [])]
  const choice = next() % 6
  if (choice === 0 && watched.length > 0) return { kind: 'slow', id: pick(watched) }
  if (choice === 1 && timed.length > 0) return { kind: 'expire', id: pick(timed) }
  const outcome: LeafOutcome =
    choice === 2 ? { status: 'failed', error: 'broken' } : { status: 'completed', value: null }
  return { kind: 'settle', id: pick(open), outcome }
}

for (const seed of seeds(howMany(1, 100))) {
  test(`a pattern that answers any moves leaves no leaf behind, never hangs, and replays (MUSTER_TEST_SEED=${seed})`, () => {
    const property = fc.property(wildNode, fc.array(fc.nat(), { minLength: 1, maxLength: 50 }), (root, choices) => {
      let choice = 0
      const { happenings, told } = playWild(root, () => choices[choice++ % choices.length] ?? 0)
      const machine = createMachine(root, null, withWild)
      const again = [machine.begin(), ...happenings.map((happening) => apply(machine, happening))]
      assert.deepEqual(
        again.map((leaves) => leaves.map(({ id, attempt }) => [id, attempt])),
        told.map((each) => (each as unknown[])[0]),
      )
    })
    fc.assert(property, { numRuns: 2_000, seed })
  })
}
