// A pattern as one record: all that Muster asks about the nodes of one type. Each pattern is a file in patterns/. The
// walkers over a tree are given the patterns as an argument, look up the record of each node by its type, and name no
// pattern.
import type { z } from 'zod'
import type { FlowNode, FunctionLeaf, Leaf, PatternNode, Topology, Work } from '../../kernel/flow.ts'
import type { Move, NodeState } from './move.ts'
import type { Suits } from './workload.ts'

/**
 * A pattern either starts its children step by step, or is one leaf to the machine. Members of these records are
 * methods, so that a record about nodes of its own type is also a record about nodes of some type.
 */
export type Pattern<Node extends PatternNode = PatternNode> = StepPattern<Node> | StreamPattern<Node>

interface StepPattern<Node extends PatternNode> extends PatternShared<Node> {
  /** Asked when a node begins, and whenever a child has ended or is slow. */
  next(state: NodeState<Node>): Move
  stream?: never
}

/** Items pass through the stages of the node, one after the other. */
interface StreamPattern<Node extends PatternNode> extends PatternShared<Node> {
  stream(node: Node): Stream
  next?: never
}

interface PatternShared<Node extends PatternNode> {
  readonly type: Node['type']
  /** A node as people write it. The nodes within it are left open; they are checked one by one. */
  readonly schema: z.ZodType
  /** The nodes, leaves, functions and agents that a node names, in the order in which they are checked. */
  parts(node: Node): readonly Part[]
  /** Maps a child's key to the key of its part, or to SELF. Default: the key itself. */
  partKey?(key: string): string
  /** Children of a later turn wait for those of the earlier ones. Without this method all run at once. */
  turnOf?(key: string): number
  /** The rest of the check, after the parts. Returns the node as it is to run. */
  check?(node: Node, check: PatternCheck): Node
  /** The number of leaves, if it is known before the run. Default: the sum of the nodes within. */
  plannedLeaves?(node: Node): number
  /** The time that a node should take, in milliseconds. */
  expectedMs(node: Node, times: Times): number
  /** The workers of the node, if it has workers of its own. */
  pool?(node: Node): PoolSettings
  /** The topology of the node, if people may choose and change it. */
  topology?(node: Node): NodeTopology<Node>
  /** Fields that name agents or functions, besides the fields of leaves. */
  readonly agentFields?: readonly string[]
  readonly functionFields?: readonly string[]
  /** The workloads for which the pattern is recommended. Without them the pattern is never recommended. */
  readonly suits?: Suits
  /** The part of docs/flows.md about the pattern. */
  readonly guide?: PatternGuide
  /** Nodes that the pattern makes while it runs, by type. People cannot write them. */
  readonly made?: Readonly<Record<string, MadePattern>>
}

export interface PatternGuide {
  /** Tells how it works, and gives its output and the effect of a failure. */
  text: string
  /** The fields that the pattern has besides those of every node. */
  fields: Readonly<Record<string, string>>
  /** A small flow, which runs in the demo project. */
  example: { input: unknown; root: Readonly<Record<string, unknown>> }
}

export interface MadePattern<Node extends PatternNode = PatternNode> {
  next(state: NodeState<Node>): Move
  /** The most nodes of this type in a flow run. One node more ends the written node around them. */
  most: number
  tooMany: string
}

/** The key of a child that is worked on in the same way as the node around it. */
export const SELF = ''

/** A part of a node: `field` and `index` give its place in the node, `key` is that of the first child made from it. */
export type Part = { field: string; index?: number } & (
  | { key: string; node: FlowNode; isRepeated?: true }
  /** A leaf, or the name of a function. It is handed an item, which `{{item}}` names, unless `hasNoItem` is set. */
  | { key: string; work: Work; hasNoItem?: true }
  /** A function that gives the things the node works on. */
  | { source: FunctionLeaf }
  | { agent: string }
  /** A value in which placeholders are filled in. */
  | { given: unknown }
  | { wrong: string }
)
export type NodePart = Extract<Part, { node: FlowNode }>

export interface Stream {
  source: unknown
  stages: readonly Leaf[]
  buffer?: number | undefined
  on_error: 'stop' | 'skip'
}

export interface PatternCheck {
  /** `field`: the path below the node. */
  say(field: string, message: string): void
  isFunction(name: string): boolean
  /** Leaves that the node will have besides those among its parts. */
  addLeaves(count: number): void
}

/** The expected times of the parts of a node, in milliseconds. */
export interface Times {
  of(node: FlowNode): number
  /** `items`: the number of things that the work is given at once. */
  work(work: Work | undefined, items?: number): number
  /** The number of items in a list that is given as it stands, or found in the input; else an assumed number. */
  count(items: unknown): number
  /** The time of things that are done at once, by this many workers, or by all that there are. */
  atOnce(times: readonly number[], workers?: number): number
  inTurn(times: readonly number[]): number
  /** The assumed number of items, if the number cannot be known. */
  assumed: number
  modelCallMs: number
}

export interface PoolSettings {
  workers: readonly string[]
  topology: Topology
  /** The topologies to which people may switch. */
  possible: readonly Topology[]
  edges?: readonly (readonly [from: string, to: string])[]
  stealing?: boolean
  overload?: { queueLength: number }
  /** True if the node may be switched when it is overloaded. */
  maySwitch: boolean
}

/** The workers of a node of a flow run. */
export interface NodePool {
  id: string
  settings: () => PoolSettings
}

export interface NodeTopology<Node extends PatternNode = PatternNode> {
  /** Undefined if the author leaves the topology open. */
  chosen: Topology | undefined
  /** The topology with which the node begins, if nobody wants another. */
  initial: Topology
  possible: readonly Topology[]
  /** Nodes of one kind of workload learn from each other. */
  workload: string
  tasks: readonly Leaf[]
  /** The node with another topology. */
  changed(topology: Topology): Node
}

/** Makes this many names, or takes these names. */
export const workerNames = (workers: number | readonly string[]): readonly string[] =>
  typeof workers === 'number' ? Array.from({ length: workers }, (_, index) => `w${index + 1}`) : workers

export const numbered = (field: string, nodes: readonly FlowNode[]): NodePart[] =>
  nodes.map((node, index) => ({ field, index, key: String(index), node }))

/** Optional work that the node leaves out has no part. */
export const workPart = (field: string, work: Work | undefined, key = field): Part[] =>
  work === undefined ? [] : [{ field, key, work }]

export interface Patterns {
  /** The patterns in the order in which people read of them. */
  readonly all: readonly Pattern[]
  of(node: FlowNode): Pattern | undefined
  made(node: FlowNode): MadePattern | undefined
}

export function createPatterns(all: readonly Pattern[]): Patterns {
  const byType = new Map(all.map((pattern) => [pattern.type, pattern]))
  const made = new Map(all.flatMap((pattern) => Object.entries(pattern.made ?? {})))
  return { all, of: ({ type }) => byType.get(type), made: ({ type }) => made.get(type) }
}
