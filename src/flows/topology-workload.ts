// Which kinds of workload a flow has: those of its adaptive parts.
import type { Adaptive, FlowNode, Topology } from '../kernel/flow.ts'
import { idFrom } from '../kernel/id.ts'

const LONGEST_NAME = 200

/** By its own word, else by what its tasks are done by: runs of the same kind have the same name. */
export function workloadOf({ workload, tasks }: Pick<Adaptive, 'workload' | 'tasks'>): string {
  if (workload !== undefined) return workload
  const names = tasks.map((task) => ('agent' in task ? `agent ${task.agent}` : `function ${task.function}`))
  const kinds = [...new Set(names)].toSorted()
  const name = kinds.join(', ')
  return name.length <= LONGEST_NAME ? name : `${kinds.length} kinds of tasks, ${idFrom(name)}`
}

/** Which topologies it may have at all: nobody but its author knows edges. */
export const possibleTopologies = ({ edges }: Pick<Adaptive, 'edges'>): Topology[] =>
  edges ? ['hierarchical', 'mesh', 'star', 'custom'] : ['hierarchical', 'mesh', 'star']

/** In the order of the tree. */
export function adaptiveNodes(root: FlowNode): Adaptive[] {
  const found: Adaptive[] = []
  mapAdaptive(root, (node) => {
    found.push(node)
    return node
  })
  return found
}

/** The tree with other adaptive parts; those stand in steps, branches and bodies only. */
export function mapAdaptive(node: FlowNode, change: (node: Adaptive) => Adaptive): FlowNode {
  switch (node.type) {
    case 'adaptive':
      return change(node)
    case 'sequential':
      return { ...node, steps: node.steps.map((step) => mapAdaptive(step, change)) }
    case 'parallel':
      return { ...node, branches: node.branches.map((branch) => mapAdaptive(branch, change)) }
    case 'loop':
      return { ...node, body: mapAdaptive(node.body, change) }
    default:
      return node
  }
}

/** The adaptive part at the end of the way; loops have it in each iteration. */
export function adaptiveAt(root: FlowNode, way: readonly { key: string }[]): Adaptive | null {
  let at: FlowNode | undefined = root
  for (const { key } of way) {
    switch (at?.type) {
      case 'sequential':
        at = at.steps[Number(key)]
        break
      case 'parallel':
        at = at.branches[Number(key)]
        break
      case 'loop':
        at = /^\d+$/.test(key) ? at.body : undefined
        break
      default:
        return null
    }
  }
  return at?.type === 'adaptive' ? at : null
}
