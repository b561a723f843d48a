import { type FlowNode, isLeaf, type PatternNode } from '../../kernel/flow.ts'
import type { NodePart, Part, Pattern, Patterns } from './pattern.ts'

export function nodesWithin(node: FlowNode, patterns: Patterns): readonly FlowNode[] {
  return nodeParts(node, patterns).map((part) => part.node)
}

const nodeParts = (node: FlowNode, patterns: Patterns): NodePart[] =>
  isLeaf(node) ? [] : (patterns.of(node)?.parts(node) ?? []).filter((part) => 'node' in part)

/** Visits the node and all patterns within it, in the order of the tree. Leaves are not visited. */
export function visit(
  node: FlowNode,
  patterns: Patterns,
  at: (node: PatternNode, pattern: Pattern, parts: readonly Part[]) => void,
): void {
  const pattern = isLeaf(node) ? undefined : patterns.of(node)
  if (!pattern) return
  const parts = pattern.parts(node)
  at(node, pattern, parts)
  for (const part of parts) if ('node' in part) visit(part.node, patterns, at)
}

export function mapTree(
  node: FlowNode,
  patterns: Patterns,
  change: (node: PatternNode, pattern: Pattern) => PatternNode,
): FlowNode {
  const pattern = patterns.of(node)
  if (isLeaf(node) || !pattern) return node
  const parts = nodeParts(node, patterns)
  const inner = parts.map((part): NodePart => ({ ...part, node: mapTree(part.node, patterns, change) }))
  return withNodes(change(node, pattern), inner)
}

/** The node with other nodes within it, each in the place that its part names. */
export function withNodes(node: PatternNode, inner: readonly NodePart[]): PatternNode {
  const fields: Record<string, FlowNode | FlowNode[]> = {}
  for (const [field, parts] of Map.groupBy(inner, (part) => part.field)) {
    const [only] = parts
    fields[field] = only && only.index === undefined ? only.node : parts.map((part) => part.node)
  }
  return { ...node, ...fields }
}
