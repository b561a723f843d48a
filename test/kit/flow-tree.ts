// Random flow trees, the functions of their leaves, and a plain recursive evaluation of such a tree.
import fc from 'fast-check'
import type { BuiltInNode } from '../../src/flows/machine/built-in-patterns.ts'
import type { FunctionLeaf } from '../../src/kernel/flow.ts'
import { idFrom } from '../../src/kernel/id.ts'

/** In each process the first attempts of a leaf fail: as many as the number at the end of its function's name. */
const MOST_FAILS = 3
const SPLIT_OVER = 2

const kinds: Record<string, (given: never) => unknown> = {
  wrap: (given: unknown) => [short(given)],
  pairs: ({ items }: { items: number[] }) => items.map((item) => [item % 3, item]),
  total: ({ key, values }: { key: number; values: number[] }) => ({ key, total: sum(values) }),
  is_large: (problem: number[]) => problem.length > SPLIT_OVER,
  halves: (problem: number[]) => [problem.slice(0, problem.length / 2), problem.slice(problem.length / 2)],
  sum: (parts: number[]) => sum(parts),
}
/** A large value is replaced by its hash: tasks of a loop that each wrap the results of all would grow without end. */
function short(value: unknown): unknown {
  const text = JSON.stringify(value) ?? ''
  return text.length <= 500 ? value : idFrom(text)
}
const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0)

export const treeFunctions: readonly string[] = Object.keys(kinds).flatMap((kind) =>
  Array.from({ length: MOST_FAILS + 1 }, (_, fails) => `${kind} ${fails}`),
)

/** The work of a leaf. Throws if the attempt is to fail. */
export function callTreeFunction(name: string, given: unknown, attempt: number): unknown {
  if (attempt <= failsOf(name)) throw new Error('broken')
  const work = kinds[name.split(' ')[0] ?? '']
  if (!work) throw new Error(`there is no ${name}`)
  return work(given as never) // the trees give each function its arguments
}
const failsOf = (name: string): number => Number(name.split(' ')[1])

const fails = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: MOST_FAILS }))
const retry = fc.option(
  fc.record({ max_retries: fc.integer({ min: 0, max: 2 }), backoff: fc.constantFrom(0, 0, 0, 2) }),
  { nil: undefined },
)
const optional = <Value>(name: string, value: Value | undefined): Record<string, Value> =>
  value === undefined ? {} : { [name]: value }
const leafOf = (kind: string) =>
  fc.record({ fails, retry }).map(
    ({ fails, retry }): FunctionLeaf => ({
      type: 'task',
      function: `${kind} ${fails}`,
      ...optional('retry', retry),
    }),
  )
const numbers = fc.array(fc.nat(99), { maxLength: 9 })
const workers = fc.integer({ min: 1, max: 3 })
/**
 * Half of the leaves have a name. A name stands for a position in the tree, and is given once the position is known.
 */
const namedLeaf = fc
  .tuple(leafOf('wrap'), fc.boolean())
  .map(([leaf, isNamed]): FunctionLeaf => (isNamed ? { ...leaf, id: 'named' } : leaf))

const mapReduce = fc.record({ items: numbers, workers, map: leafOf('pairs'), retry }).map(
  ({ retry, ...given }): BuiltInNode => ({
    type: 'map_reduce',
    reduce: 'total 0',
    partition: 'range',
    ...given,
    ...optional('retry', retry),
  }),
)
const forkJoin = fc.record({ problem: numbers, workers, solve: leafOf('sum'), stealing: fc.boolean(), retry }).map(
  ({ retry, ...given }): BuiltInNode => ({
    type: 'fork_join',
    should_split: 'is_large 0',
    split: 'halves 0',
    join: 'sum 0',
    ...given,
    ...optional('retry', retry),
  }),
)
const adaptive = fc
  .record({
    workers,
    tasks: fc.array(namedLeaf, { minLength: 1, maxLength: 6 }),
    switch: fc.boolean(),
    retry,
    topology: fc.constantFrom('hierarchical' as const, 'mesh' as const, 'star' as const),
  })
  .map(
    ({ retry, ...given }): BuiltInNode => ({
      type: 'adaptive',
      overload: { queue_length: 1 },
      ...given,
      ...optional('retry', retry),
    }),
  )

const { tree } = fc.letrec<{ tree: BuiltInNode; inner: BuiltInNode }>((tie) => ({
  tree: fc.oneof({ maxDepth: 4, withCrossShrink: true }, namedLeaf, tie('inner'), mapReduce, forkJoin, adaptive),
  inner: fc.oneof(
    fc
      .record({ steps: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }), retry })
      .map(({ steps, retry }): BuiltInNode => ({ type: 'sequential', steps, ...optional('retry', retry) })),
    fc
      .record({ branches: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }), retry })
      .map(({ branches, retry }): BuiltInNode => ({ type: 'parallel', branches, ...optional('retry', retry) })),
    fc
      .record({ body: tie('tree'), max_iterations: fc.integer({ min: 1, max: 3 }) })
      .map(({ body, max_iterations }): BuiltInNode => ({ type: 'loop', body, max_iterations })),
  ),
}))

export const flowTrees: fc.Arbitrary<BuiltInNode> = tree.map((root) => {
  let count = 0
  // Ids occur nowhere else in these trees.
  const written = JSON.stringify(root, (key, value: unknown) => (key === 'id' ? `leaf_${++count}` : value))
  return JSON.parse(written) as BuiltInNode // as it was
})

export interface Meaning {
  status: 'completed' | 'partial' | 'failed'
  value: unknown
  /** The last results of the leaves with a name. */
  results: Record<string, unknown>
  /** All results of the leaves in order, for each iteration of a loop and each attempt of the nodes around them. */
  gave: Record<string, unknown[]>
  /** The numbers of leaves that completed and failed in the end. */
  completed: number
  failed: number
  /** The number of calls of functions, each attempt counted. */
  calls: number
}

type Ended = Pick<Meaning, 'status' | 'value'>
const FAILED: Ended = { status: 'failed', value: null }
const whole = (value: unknown): Ended => ({ status: 'completed', value })

/** Evaluates the tree one node after the other, also nodes that may run at once. */
export function meaningOf(root: BuiltInNode, input: unknown): Meaning {
  const results: Meaning['results'] = {}
  const gave: Meaning['gave'] = {}
  const tally = { completed: 0, failed: 0, calls: 0 }
  /** Leaves by their place in the order of a life. A leaf that is finished is not called in a later life. */
  const finished = new Set<number>()
  let next = 0
  return { ...read(root, input), results, gave, ...tally }

  function read(node: BuiltInNode, previous: unknown): Ended {
    if (node.type === 'task') return leaf(node, previous)
    const attempts = 1 + (node.retry?.max_retries ?? 0)
    const first = next
    let ended = once(node, previous)
    for (let attempt = 2; attempt <= attempts && ended.status === 'failed'; attempt++) {
      next = first
      ended = once(node, previous)
    }
    return ended
  }

  /** `each` has the items for which the leaf is called, one after the other. */
  function leaf(node: BuiltInNode, given: unknown, each?: readonly unknown[]): Ended {
    if (!('function' in node)) throw new Error('there are no agents here')
    const unit = next++
    const fails = failsOf(node.function)
    const attempts = 1 + (node.retry?.max_retries ?? 0)
    const isKept = finished.has(unit)
    if (!isKept) tally.calls += Math.min(attempts, fails)
    if (fails >= attempts) {
      tally.failed++
      return FAILED
    }
    tally.completed++
    if (!isKept) tally.calls += each?.length ?? 1
    finished.add(unit)
    const call = (one: unknown): unknown => callTreeFunction(node.function, one, fails + 1)
    const value = each ? each.map(call) : call(given)
    if (node.id !== undefined) {
      results[node.id] = value
      gave[node.id] = [...(gave[node.id] ?? []), value]
    }
    return whole(value)
  }

  function once(node: BuiltInNode, previous: unknown): Ended {
    switch (node.type) {
      case 'sequential':
        return inTurn(node.steps, previous)
      case 'loop':
        return inTurn(
          Array.from({ length: node.max_iterations }, () => node.body),
          previous,
        )
      case 'parallel':
        return together(node.branches.map((branch) => read(branch, previous)))
      case 'adaptive':
        return together(node.tasks.map((task) => leaf(task, previous)))
      case 'map_reduce':
        return mapped(node.items as number[], node.workers, asLeaf(node.map), asLeaf(node.reduce)) // as made above
      case 'fork_join':
        return solved(node.problem as number[], node) // as made above
      default:
        throw new Error(`there are no ${node.type} here`)
    }
  }

  function inTurn(steps: readonly BuiltInNode[], previous: unknown): Ended {
    let value = previous
    let isPartial = false
    for (const step of steps) {
      const ended = read(step, value)
      if (ended.status === 'failed') return FAILED
      value = ended.value
      isPartial ||= ended.status === 'partial'
    }
    return { status: isPartial ? 'partial' : 'completed', value }
  }

  function together(all: readonly Ended[]): Ended {
    if (all.every(({ status }) => status === 'failed')) return FAILED
    const isWhole = all.every(({ status }) => status === 'completed')
    return { status: isWhole ? 'completed' : 'partial', value: all.map(({ value }) => value) }
  }

  function mapped(items: readonly number[], workers: number, map: BuiltInNode, reduce: BuiltInNode): Ended {
    if (items.length === 0) return whole([])
    const count = Math.min(workers, items.length)
    const at = (place: number): number => Math.floor((place * items.length) / count)
    const parts = Array.from({ length: count }, (_, place) => ({ items: items.slice(at(place), at(place + 1)) }))
    if (parts.map((part) => leaf(map, part)).some(({ status }) => status === 'failed')) return FAILED
    const keys = [0, 1, 2].filter((key) => items.some((item) => item % 3 === key))
    const groups = keys.map((key) => ({ key, values: items.filter((item) => item % 3 === key) }))
    const reducers = Math.min(workers, keys.length)
    const reduced = Array.from({ length: reducers }, (_, place) =>
      leaf(
        reduce,
        null,
        groups.filter((_, index) => Math.floor((index * reducers) / groups.length) === place),
      ),
    )
    return whole(reduced.flatMap(({ value }) => value))
  }

  function solved(problem: readonly number[], node: Extract<BuiltInNode, { type: 'fork_join' }>): Ended {
    const isLarge = leaf(asLeaf(node.should_split), problem).value
    if (!isLarge) return leaf(asLeaf(node.solve), problem)
    const parts = leaf(asLeaf(node.split), problem).value as number[][] // halves
    const solutions = parts.map((part) => solved(part, node))
    if (solutions.some(({ status }) => status === 'failed')) return FAILED
    return leaf(
      asLeaf(node.join),
      solutions.map(({ value }) => value),
    )
  }
}

const asLeaf = (work: string | BuiltInNode): BuiltInNode =>
  typeof work === 'string' ? { type: 'task', function: work } : work
