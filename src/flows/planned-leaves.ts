import type { FlowNode } from '../kernel/flow.ts'

/** The number of leaves a tree will have, as far as that can be said before it runs. */
export function plannedLeaves(node: FlowNode): number {
  switch (node.type) {
    case 'task':
      return 1
    case 'sequential':
      return sum(node.steps)
    case 'parallel':
      return sum(node.branches)
    case 'loop':
      return plannedLeaves(node.body)
    case 'map_reduce':
      return node.workers + 1
    case 'pipeline':
      return node.stages.length
    case 'fork_join':
      return 1
    case 'hierarchical':
      return node.workers.length
    case 'adaptive':
      return node.tasks.length
  }
}

const sum = (nodes: readonly FlowNode[]): number => nodes.reduce((all, node) => all + plannedLeaves(node), 0)
