import { type FlowNode, isLeaf } from '../../kernel/flow.ts'
import type { Patterns } from '../machine/pattern.ts'
import { nodesWithin } from '../machine/tree.ts'

/** The number of leaves that a tree will have, as far as it can be known before the run. */
export function plannedLeaves(node: FlowNode, patterns: Patterns): number {
  if (isLeaf(node)) return 1
  const inner = (): number => nodesWithin(node, patterns).reduce((all, each) => all + plannedLeaves(each, patterns), 0)
  return patterns.of(node)?.plannedLeaves?.(node) ?? inner()
}
