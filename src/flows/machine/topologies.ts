import type { FlowNode, Topology } from '../../kernel/flow.ts'
import type { NodeTopology, Patterns } from './pattern.ts'
import { mapTree, visit } from './tree.ts'

/** The nodes whose topology people may choose, in the order of the tree. */
export function topologiesIn(root: FlowNode, patterns: Patterns): NodeTopology[] {
  const found: NodeTopology[] = []
  visit(root, patterns, (node, pattern) => {
    const topology = pattern.topology?.(node)
    if (topology) found.push(topology)
  })
  return found
}

/** The tree with the topologies that `choose` gives; null leaves a node as it is. */
export function withTopologies(
  root: FlowNode,
  patterns: Patterns,
  choose: (topology: NodeTopology) => Topology | null,
): FlowNode {
  return mapTree(root, patterns, (node, pattern) => {
    const topology = pattern.topology?.(node)
    const chosen = topology && choose(topology)
    return topology && chosen ? topology.changed(chosen) : node
  })
}
