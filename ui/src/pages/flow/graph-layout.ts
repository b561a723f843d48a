// The tasks of a flow run as a graph. Large flows are drawn with one node for tasks that wait for the same ones.
import dagre from '@dagrejs/dagre'
import type { TaskRow } from './flow-store.ts'

export interface GraphNode {
  id: string
  /** The tasks that the node stands for. */
  ids: readonly string[]
  x: number
  y: number
}

export interface Graph {
  nodes: GraphNode[]
  edges: { from: string; to: string }[]
  /** Tasks without a node: the graph would be too large to read. */
  leftOut: number
}

export const NODE = { width: 168, height: 42 }
const MOST_NODES = 600
const MOST_EDGES = 1_500

export function layOut(tasks: readonly TaskRow[]): Graph {
  const edges = tasks.reduce((sum, { depends_on }) => sum + depends_on.length, 0)
  const isLarge = tasks.length > MOST_NODES || edges > MOST_EDGES
  const groups = isLarge ? sameWaits(tasks) : tasks.map((task) => [task])
  const shown = groups.slice(0, MOST_NODES)
  const nodeOf = new Map(shown.flatMap((group) => group.map(({ id }) => [id, group[0]?.id ?? id] as const)))
  const graph = new dagre.graphlib.Graph().setGraph({ rankdir: 'LR', nodesep: 10, ranksep: 56 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const [first] of shown) if (first) graph.setNode(first.id, { ...NODE })
  const between = new Map<string, { from: string; to: string }>()
  for (const { id, depends_on } of shown.flat()) {
    for (const earlier of depends_on) {
      const [from, to] = [nodeOf.get(earlier), nodeOf.get(id)]
      if (from && to && from !== to) between.set(`${from}\n${to}`, { from, to })
    }
  }
  for (const { from, to } of between.values()) graph.setEdge(from, to)
  dagre.layout(graph)
  return {
    nodes: shown.flatMap((group) => {
      const [first] = group
      if (!first) return []
      const { x, y } = graph.node(first.id)
      return [{ id: first.id, ids: group.map(({ id }) => id), x: x - NODE.width / 2, y: y - NODE.height / 2 }]
    }),
    edges: [...between.values()],
    leftOut: groups.slice(MOST_NODES).flat().length,
  }
}

/** Tasks of one pattern that wait for the same tasks. */
function sameWaits(tasks: readonly TaskRow[]): TaskRow[][] {
  const groups = Map.groupBy(tasks, ({ parent_id, depends_on }) => JSON.stringify([parent_id, depends_on]))
  return [...groups.values()]
}
