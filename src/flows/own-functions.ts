import type { FlowNode, Leaf, Work } from '../kernel/flow.ts'
import { nodesWithin } from './nodes-within.ts'
import { problemSource } from './patterns/fork-join.ts'
import { sourceLeaf } from './patterns/map-reduce.ts'

/** Functions that the owner of the flow calls itself: stages and sources. Other processes may call all others. */
export function ownFunctions(root: FlowNode): string[] {
  const names = new Set<string>()
  visit(root)
  return [...names].toSorted()

  function visit(node: FlowNode): void {
    for (const within of nodesWithin(node)) visit(within)
    if (node.type === 'map_reduce') addSource(sourceLeaf(node.items))
    if (node.type === 'fork_join') addSource(problemSource(node.problem))
    if (node.type !== 'pipeline') return
    addSource(sourceLeaf(node.source))
    for (const stage of node.stages) add(stage)
  }

  function addSource(leaf: Leaf | null): void {
    if (leaf) add(leaf)
  }

  function add(work: Work): void {
    if (typeof work === 'string') names.add(work)
    else if ('function' in work) names.add(work.function)
  }
}
