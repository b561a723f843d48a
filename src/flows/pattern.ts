// A pattern is a pure function from the standing of a node to the next move. Each pattern has a file of its own in
// patterns/; the machine (machine.ts) keeps the tree and knows none of them.
import type { FlowNode, ForkJoin, Leaf, Work } from '../kernel/flow.ts'

/** The end of a node. Partial: some of it failed, or is not good enough, and there is a value all the same. */
export type Outcome =
  | { status: 'completed' | 'partial'; value: unknown; error: null; problems?: readonly string[]; tookMs?: number }
  | { status: 'failed'; value: unknown; error: string }

/** A part of a problem: people do not write it, the fork makes it. */
export interface Piece {
  type: 'piece'
  of: ForkJoin
  problem: unknown
  depth: number
}

export type MachineNode = FlowNode | Piece

/** A node within the node, started by the pattern under a key of its own. */
export interface Child {
  key: string
  node: MachineNode
  /** The value of the step before: `{{previous}}`. */
  previous: unknown
  /** `{{item}}`, where the child is about one thing among several. */
  item?: unknown
  /** The leaf is called for each of these and gives a list; `{{item}}` is each of them in turn. */
  each?: readonly unknown[]
  /** The leaf gives the things this node works on. */
  isSource?: true
  /** An agent is asked for a decision: its answer is JSON of this shape, under this name. */
  answer?: Decision
  /** The siblings whose results the child was given, where the shape of the node does not say. */
  after?: readonly string[]
}

export interface Decision {
  name: string
  schema: Readonly<Record<string, unknown>>
}

/** The state of a node, as its pattern sees it. */
export interface Standing<Node extends MachineNode> {
  node: Node
  previous: unknown
  /** The children that were started, in that order; null while a child is under way. */
  children: ReadonlyMap<string, Outcome | null>
  /** The node of each child. */
  nodes: ReadonlyMap<string, MachineNode>
  /** The number of children under way. */
  open: number
  /** The watched children that took longer than allowed. */
  slow: ReadonlySet<string>
  /** Fills the templates in a value of the node. */
  render(value: unknown): unknown
}

export interface Start {
  start: readonly Child[]
  /** Children under way that nobody waits for any more. */
  drop?: readonly string[]
  /** Children that are leaves: the pattern is asked again when a leaf is still under way so long after it began. */
  watch?: readonly { key: string; ms: number }[]
}

export type Move = Start | { end: Outcome } | 'wait'

/** A pattern is asked when its node begins, and whenever a child has ended or is slow. */
export type Pattern<Node extends MachineNode> = (standing: Standing<Node>) => Move

export const completed = (value: unknown): Outcome => ({ status: 'completed', value, error: null })
export const partial = (value: unknown): Outcome => ({ status: 'partial', value, error: null })
export const failed = (error: string, value: unknown = null): Outcome => ({ status: 'failed', value, error })

/** Completed, or partial where some part was partial. */
export const endOf = (value: unknown, parts: Iterable<Outcome | null>): Outcome =>
  [...parts].some((part) => part?.status === 'partial') ? partial(value) : completed(value)

/** The most items that joined lists may hold; more would exhaust the memory before they could be counted. */
const MOST_ITEMS = 2_000_000

/** The lists among the values become one; a value that is no list keeps its place. Throws where it is too long. */
export function flattened(values: readonly unknown[]): unknown[] {
  let items = 0
  for (const value of values) items += Array.isArray(value) ? value.length : 1
  if (items > MOST_ITEMS) throw new Error(`The lists have more than ${MOST_ITEMS} items together.`)
  return values.flat(1)
}

/** A function's name stands for a leaf that is given the item. */
export const leafOf = (work: Work): Leaf => (typeof work === 'string' ? { type: 'task', function: work } : work)
