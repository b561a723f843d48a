// The moves of a pattern: given the state of a node, the pattern says which children are started next, or how the node
// ended. A pattern calls nothing and keeps nothing.
import type { FlowNode, FunctionLeaf, Leaf, PatternNode, Work } from '../../kernel/flow.ts'

/** Partial: a part of the node failed, or is not good enough, and there is a value all the same. */
export type NodeOutcome =
  | { status: 'completed' | 'partial'; value: unknown; error: null; problems?: readonly string[]; tookMs?: number }
  | { status: 'failed'; value: unknown; error: string; made?: string }

/** A node within the node, started by the pattern under a key of its own. */
export interface Child {
  key: string
  node: FlowNode
  /** True for a node of the tree as people wrote it, standing for itself alone. Its id names it in the run. */
  isOwn?: true
  /** The name under which people see the leaf. Without it, that of the agent or the function. */
  title?: string
  /** The iteration in which the node begins anew, from 1 on. */
  iteration?: number
  /** The value of the step before: `{{previous}}`. */
  previous: unknown
  /** `{{item}}`, if the child is about one thing among several. */
  item?: unknown
  /** The leaf is called for each of these things and gives a list; `{{item}}` is each of them in turn. */
  each?: readonly unknown[]
  /** True if the leaf gives the things this node works on. */
  isSource?: true
  /** An agent is asked for a decision: its answer is JSON of this shape, under this name. */
  answer?: Decision
  /** Present if the child gives one part of a list: the list's name within this node, and the place in it, from 0. */
  part?: { of: string; place: number }
  /** The siblings whose results the child was given, if the shape of the node does not say. */
  after?: readonly string[]
  /** The siblings whose work the child is given instead: they were dropped, or failed. */
  replaces?: readonly string[]
}

export interface Decision {
  name: string
  schema: Readonly<Record<string, unknown>>
}

/** The state of a node, as its pattern sees it. */
export interface NodeState<Node extends PatternNode> {
  node: Node
  previous: unknown
  /** The children that were started, in that order, with their outcomes; null while a child is under way. */
  children: ReadonlyMap<string, NodeOutcome | null>
  nodes: ReadonlyMap<string, FlowNode>
  open: number
  /** The watched children that took longer than allowed. */
  slow: ReadonlySet<string>
  /** Fills the placeholders in a value of the node. */
  render(value: unknown): unknown
}

export interface StartMove {
  start: readonly Child[]
  /** Children under way whose results nobody waits for any more. They are dropped before others start. */
  drop?: readonly string[]
  /** The pattern is asked again if such a leaf is still under way this long after it began. */
  watch?: readonly { key: string; ms: number }[]
  /** Leaves that the pattern knows of and will start later. Without a number it is as many as before. */
  toCome?: number
}

/**
 * A node that ends drops the children still under way. A pattern that has dropped its last child and started none is
 * asked again. A node fails if its pattern waits while no child is under way, or starts two children under one key.
 */
export type Move = StartMove | { end: NodeOutcome } | 'wait'

export const completed = (value: unknown): NodeOutcome => ({ status: 'completed', value, error: null })
export const partial = (value: unknown): NodeOutcome => ({ status: 'partial', value, error: null })
export const failed = (error: string, value: unknown = null): Extract<NodeOutcome, { status: 'failed' }> => ({
  status: 'failed',
  value,
  error,
})

/** Completed, or partial if a part was partial. */
export const endOf = (value: unknown, parts: Iterable<NodeOutcome | null>): NodeOutcome =>
  [...parts].some((part) => part?.status === 'partial') ? partial(value) : completed(value)

/** The most items that joined lists may hold; more would exhaust the memory before they could be counted. */
const MOST_ITEMS = 2_000_000

/** The lists among the values become one; a value that is no list keeps its place. Throws if the list gets too long. */
export function flattened(values: readonly unknown[]): unknown[] {
  let items = 0
  for (const value of values) items += Array.isArray(value) ? value.length : 1
  if (items > MOST_ITEMS) throw new Error(`The lists have more than ${MOST_ITEMS} items together.`)
  return values.flat(1)
}

/** A function's name stands for a leaf that is given the item. */
export const leafOf = (work: Work): Leaf => (typeof work === 'string' ? callOf(work) : work)

export const callOf = (name: string, args?: unknown): FunctionLeaf => ({
  type: 'task',
  function: name,
  ...(args === undefined ? {} : { args }),
})
