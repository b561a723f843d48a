import type { FlowNode } from '../kernel/flow.ts'

/** The nodes of a node that may be patterns themselves; all others hold leaves alone. */
export function nodesWithin(node: FlowNode): readonly FlowNode[] {
  switch (node.type) {
    case 'sequential':
      return node.steps
    case 'parallel':
      return node.branches
    case 'loop':
      return [node.body]
    default:
      return []
  }
}
