// A leaf as it is started. Arguments are rendered only when they are asked for: a flow has ten thousand leaves, each of
// which may be given megabytes, and a replay starts every one of them again.
import type { Leaf } from '../../kernel/flow.ts'
import type { Frame } from './frame.ts'
import { idBelow } from './leaf-id.ts'
import type { Decision } from './move.ts'
import type { NodePool, Stream } from './pattern.ts'
import { render, renderParts, requireRoom, resultsNamed, type Scope } from './render.ts'
import { sourceLeaf } from './source.ts'

export interface FlowLeaf {
  /** Unique in the run, and the same in every replay. */
  id: string
  /** The id that people gave the node of the tree, if they gave one. */
  nodeId: string | null
  /** The name that the pattern gave the leaf, if it gave one. */
  title: string | null
  node: Leaf
  /** True if the leaf is called for several things, and gives a list. */
  isEach: boolean
  calls: number
  /** The argument of the call at this place, from 0, rendered anew each time. Throws if it is too large. */
  argumentOf(place: number): unknown
  /** True for a function that gives the things a pattern works on, and may give them one by one. */
  isSource: boolean
  answer: Decision | null
  /** Present for one part of a list: the list, under a name that is unique in the run, and the place in it. */
  part: { of: string; place: number } | null
  /** The leaves whose results this leaf was given, if the shape of the flow does not say. */
  after: readonly string[]
  /** The leaves whose work this leaf is given instead. Their calls may have taken effect. */
  replaces: readonly string[]
  /** The attempts count from 1. */
  attempt: number
  afterMs: number
  parentId: string | null
  /** A pattern that is one leaf to the machine; its argument is the list of items, or null for a function's. */
  stream: (Stream & { argumentOf: (stage: number, item: unknown) => unknown }) | null
  /** The part of the flow whose workers do this leaf, if the part has workers. */
  pool: NodePool | null
}

/** True for a pipeline with an agent as a stage. */
export const hasAgentStage = ({ stream }: FlowLeaf): boolean =>
  stream?.stages.some((stage) => 'agent' in stage) ?? false

export function flowLeaf(frame: Frame, node: Leaf, live: Scope, afterMs: number): FlowLeaf {
  const { parent } = frame
  const given = givenTo(node)
  // A leaf without arguments of its own is given the value before it, and needs no results.
  const scope = given === undefined ? live : { ...live, results: resultsFor(node, given, live) }
  const argumentOf = (place: number): unknown => {
    const item = frame.each ? frame.each[place] : frame.item
    if (given !== undefined) return render(given, { ...scope, item })
    const whole = item === undefined ? frame.previous : item
    requireRoom(whole)
    return whole
  }
  return {
    id: frame.id,
    nodeId: node.id ?? null,
    title: frame.title ?? null,
    node,
    isEach: frame.each !== undefined,
    calls: frame.each?.length ?? 1,
    argumentOf,
    isSource: frame.isSource ?? false,
    answer: frame.answer ?? null,
    part: frame.part && parent ? { of: idBelow(parent.id, frame.part.of), place: frame.part.place } : null,
    after: siblings(parent, frame.after),
    replaces: siblings(parent, frame.replaces),
    attempt: frame.attempt,
    afterMs,
    parentId: parent?.id ?? null,
    pool: frame.pool,
    stream: null,
  }
}

const siblings = (parent: Frame | null, keys: readonly string[] = []): readonly string[] =>
  parent ? keys.map((key) => idBelow(parent.id, key)) : []

/** The arguments of a leaf as people wrote them, with their placeholders. */
export const givenTo = (node: Leaf | undefined): unknown => (node && 'agent' in node ? node.input : node?.args)

/** The names of results in the placeholders of a leaf; null: all results. */
const named = new WeakMap<Leaf, ReadonlySet<string> | null>()

/** The present results of the leaves that the placeholders name. */
function resultsFor(node: Leaf, given: unknown, { results }: Scope): Scope['results'] {
  let names = named.get(node)
  if (names === undefined) {
    names = resultsNamed(given)
    named.set(node, names)
  }
  if (names === null) return { ...results }
  return Object.fromEntries([...names].flatMap((name) => (Object.hasOwn(results, name) ? [[name, results[name]]] : [])))
}

export function streamLeaf(frame: Frame, stream: Stream, live: Scope, afterMs: number): FlowLeaf {
  const argumentOf = (stage: number, item: unknown): unknown => {
    const given = givenTo(stream.stages[stage])
    return given === undefined ? item : render(given, { ...live, item })
  }
  const source = sourceLeaf(stream.source)
  const given = source ? ('args' in source ? source.args : undefined) : stream.source
  const scope = { ...live, results: { ...live.results } }
  return {
    id: frame.id,
    nodeId: frame.node.id ?? null,
    title: null,
    node: { type: 'task', function: frame.node.type },
    // The source, or the argument of the function that gives the source.
    argumentOf: () =>
      given === undefined ? frame.previous : source ? render(given, scope) : renderParts(given, scope),
    isEach: false,
    calls: 1,
    isSource: false,
    answer: null,
    part: null,
    after: [],
    replaces: [],
    attempt: frame.attempt,
    afterMs,
    parentId: frame.parent?.id ?? null,
    pool: null,
    stream: { ...stream, argumentOf },
  }
}
