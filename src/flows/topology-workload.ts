// The kinds of workload of a flow: those of its adaptive parts.
import type { Adaptive, FlowNode, Topology } from '../kernel/flow.ts'
import { idFrom } from '../kernel/id.ts'

const LONGEST_NAME = 200

/** The name that the node gives, else one made of its tasks' agents and functions: runs of one kind share the name. */
export function workloadOf({ workload, tasks }: Pick<Adaptive, 'workload' | 'tasks'>): string {
  if (workload !== undefined) return workload
  const names = tasks.map((task) => ('agent' in task ? `agent ${task.agent}` : `function ${task.function}`))
  const kinds = [...new Set(names)].toSorted()
  const name = kinds.join(', ')
  return name.length <= LONGEST_NAME ? name : `${kinds.length} kinds of tasks, ${idFrom(name)}`
}

/** The topologies that the node may have at all: only its author can give edges. */
export const possibleTopologies = ({ edges }: Pick<Adaptive, 'edges'>): Topology[] =>
  edges ? ['hierarchical', 'mesh', 'star', 'custom'] : ['hierarchical', 'mesh', 'star']

/** The adaptive nodes, in the order of the tree. */
export function adaptiveNodes(root: FlowNode): Adaptive[] {
  const found: Adaptive[] = []
  mapAdaptive(root, (node) => {
    found.push(node)
    return node
  })
  return found
}

/** The tree with its adaptive nodes changed; they stand in steps, branches and bodies only. */
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

/** The adaptive part at the end of the path; in a loop each iteration has it. */
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
