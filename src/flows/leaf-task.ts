// A leaf as it is started: its node and its arguments. Arguments are rendered only when they are asked for: a flow has
// ten thousand leaves, each of which may be given megabytes, and a replay starts every one of them again.
import type { Adaptive, ForkJoin, Leaf, MapReduce, Pipeline } from '../kernel/flow.ts'
import type { Decision, MachineNode } from './pattern.ts'
import { sourceLeaf } from './patterns/map-reduce.ts'
import { render, renderParts, requireRoom, resultsNamed, type Scope } from './render.ts'

/** A leaf that is to be started. */
export interface LeafTask {
  /** Unique in the run, and the same in every replay. */
  id: string
  /** The id of the node in the tree, where people gave it one. */
  nodeId: string | null
  leaf: Leaf
  /** The leaf is called for several things, and gives a list. */
  isEach: boolean
  /** The number of calls of the leaf. */
  calls: number
  /** The argument of the call at this place, from 0. Rendered anew each time. Throws where it is too large. */
  argumentOf(place: number): unknown
  /** The leaf is a function that gives the things a pattern works on, and may give them one by one. */
  isSource: boolean
  answer: Decision | null
  /** The leaves whose results this leaf was given, where the shape of the flow does not say. */
  after: readonly string[]
  /** From 1. */
  attempt: number
  afterMs: number
  parentId: string | null
  /** A pipeline, which is one leaf to the machine; its argument is the list of items, or null for a function's. */
  stream: { node: Pipeline; argumentOf: (stage: number, item: unknown) => unknown } | null
  /** The part of the flow whose workers do this leaf, where the part has workers. */
  pool: { id: string; node: Adaptive | ForkJoin | MapReduce } | null
}

/** The machine's record of a leaf. */
export interface LeafFrame {
  id: string
  node: MachineNode
  parent: LeafFrame | null
  previous: unknown
  item: unknown
  each: readonly unknown[] | undefined
  isSource: boolean
  answer: Decision | null
  after: readonly string[]
  attempt: number
}

export function leafTask(frame: LeafFrame, leaf: Leaf, live: Scope, afterMs: number): LeafTask {
  const given = givenTo(leaf)
  // A leaf without arguments of its own is given the value before it, and needs no results.
  const scope = given === undefined ? live : { ...live, results: resultsFor(leaf, given, live) }
  const argumentOf = (place: number): unknown => {
    const item = frame.each ? frame.each[place] : frame.item
    if (given !== undefined) return render(given, { ...scope, item })
    const whole = item === undefined ? frame.previous : item
    requireRoom(whole)
    return whole
  }
  return {
    id: frame.id,
    nodeId: leaf.id ?? null,
    leaf,
    isEach: frame.each !== undefined,
    calls: frame.each?.length ?? 1,
    argumentOf,
    isSource: frame.isSource,
    answer: frame.answer,
    after: frame.after.map((key) => `${frame.parent?.id}/${key}`),
    attempt: frame.attempt,
    afterMs,
    parentId: frame.parent?.id ?? null,
    pool: poolAround(frame),
    stream: null,
  }
}

const givenTo = (leaf: Leaf | undefined): unknown => (leaf && 'agent' in leaf ? leaf.input : leaf?.args)

/** The names of results in the templates of a leaf; null: all results. */
const named = new WeakMap<Leaf, ReadonlySet<string> | null>()

/** The results as they are now, of those that the leaf names. */
function resultsFor(leaf: Leaf, given: unknown, { results }: Scope): Scope['results'] {
  let names = named.get(leaf)
  if (names === undefined) {
    names = resultsNamed(given)
    named.set(leaf, names)
  }
  if (names === null) return { ...results }
  return Object.fromEntries([...names].flatMap((name) => (Object.hasOwn(results, name) ? [[name, results[name]]] : [])))
}

export function streamTask(frame: LeafFrame, node: Pipeline, live: Scope, afterMs: number): LeafTask {
  const argumentOf = (stage: number, item: unknown): unknown => {
    const given = givenTo(node.stages[stage])
    return given === undefined ? item : render(given, { ...live, item })
  }
  const source = sourceLeaf(node.source)
  const given = source ? ('args' in source ? source.args : undefined) : node.source
  const scope = { ...live, results: { ...live.results } }
  return {
    ...{ id: frame.id, nodeId: node.id ?? null, leaf: { type: 'task', function: 'pipeline' } },
    // The source, or the argument of the function that gives it.
    argumentOf: () =>
      given === undefined ? frame.previous : source ? render(given, scope) : renderParts(given, scope),
    ...{ isEach: false, calls: 1, isSource: false, answer: null, after: [], attempt: frame.attempt, afterMs },
    ...{ parentId: frame.parent?.id ?? null, pool: null, stream: { node, argumentOf } },
  }
}

/** The nearest part around the leaf that has workers of its own. */
function poolAround(frame: LeafFrame): LeafTask['pool'] {
  for (let at = frame.parent; at; at = at.parent) {
    const { id, node } = at
    if (node.type === 'adaptive' || node.type === 'fork_join' || node.type === 'map_reduce') return { id, node }
  }
  return null
}
