// The machine's record of a node that has begun: its place in the tree of the run, and the outcomes of its children.
import { type FlowNode, isLeaf } from '../../kernel/flow.ts'
import { idBelow, idOfNamed, type Mark, ROOT } from './leaf-id.ts'
import type { Child, NodeOutcome } from './move.ts'
import type { NodePool, Patterns } from './pattern.ts'

export interface Frame extends Child {
  id: string
  parent: Frame | null
  /** The attempts count from 1. */
  attempt: number
  /** The iteration of each loop around the node, and the attempt of each pattern with a retry, from the outside in. */
  lives: readonly Mark[]
  /** The workers of the node, or of the nearest node around it that has workers. */
  pool: NodePool | null
  children: Map<string, NodeOutcome | null>
  nodes: Map<string, FlowNode>
  slow: Set<string>
  /** The children under way, by key. */
  under: Map<string, Frame>
}

export const rootFrame = (root: FlowNode, input: unknown, patterns: Patterns): Frame =>
  frameOf({ key: ROOT, node: root, isOwn: true, previous: input }, null, patterns)

export function frameOf(child: Child, parent: Frame | null, patterns: Patterns): Frame {
  const { node, iteration } = child
  const around: readonly Mark[] = parent?.lives ?? []
  const outer: readonly Mark[] = iteration === undefined ? around : [...around, `#${iteration}`]
  const lives: readonly Mark[] = canLiveAgain(node) ? [...outer, '~1'] : outer
  return identified({ ...child, parent, attempt: 1, lives }, patterns)
}

/** The same node, tried once more. A leaf keeps its id; the children of a pattern get other ids. */
export function again(frame: Frame, patterns: Patterns): Frame {
  const attempt = frame.attempt + 1
  if (!canLiveAgain(frame.node)) return { ...frame, attempt }
  return identified({ ...frame, attempt, lives: [...frame.lives.slice(0, -1), `~${attempt}`] }, patterns)
}

/** A leaf that is tried again keeps its id; only a pattern has several lives. */
const canLiveAgain = (node: FlowNode): boolean => !isLeaf(node) && node.retry !== undefined

interface Inside extends Pick<Frame, 'children' | 'nodes' | 'slow' | 'under'> {}
type Unidentified = Omit<Frame, 'id' | 'pool' | keyof Inside>

function identified(frame: Unidentified, patterns: Patterns): Frame {
  const id = idOf(frame)
  const pool = poolOf(frame, id, patterns)
  return { ...frame, id, pool, ...(isLeaf(frame.node) ? inLeaf : emptyInside()) }
}

const emptyInside = (): Inside => ({ children: new Map(), nodes: new Map(), slow: new Set(), under: new Map() })

/** A leaf has no children. A flow may have a hundred thousand leaves, which share these empty maps. */
const inLeaf = emptyInside()

/** A node without an id of its own, or whose id stands for many nodes, is identified by the path to it. */
function idOf({ node, key, isOwn, parent, lives, attempt }: Unidentified): string {
  if (!parent) return idOfNamed(node.id ?? key, lives)
  if (isOwn && node.id !== undefined) return idOfNamed(node.id, lives)
  return idBelow(parent.id, key, canLiveAgain(node) ? attempt : 1)
}

function poolOf({ node, parent }: Unidentified, id: string, patterns: Patterns): NodePool | null {
  const pool = isLeaf(node) ? undefined : patterns.of(node)?.pool
  return pool && !isLeaf(node) ? { id, settings: () => pool(node) } : (parent?.pool ?? null)
}
