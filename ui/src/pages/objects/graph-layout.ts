// The graph around an object: which objects and relationships it holds, and where they stand.
import { Graph, layout } from '@dagrejs/dagre'
import type { Relationship } from '../../../../src/kernel/object.ts'

export const NODE = { width: 150, height: 42 }
/** A graph with more nodes helps nobody. */
export const MOST_NODES = 40

export interface Around {
  ids: string[]
  edges: Relationship[]
  /** How many related objects are left out. */
  leftOut: number
}

/** The objects around the centre, nearest first, and the relationships between those that are kept. */
export function around(centre: string, relationships: readonly Relationship[]): Around {
  const unique = new Map(relationships.map((each) => [each.id, each]))
  const near = [...unique.values()].filter(({ from_id, to_id }) => from_id === centre || to_id === centre)
  const ids = new Set([centre])
  for (const { from_id, to_id } of [...near, ...unique.values()]) ids.add(from_id).add(to_id)
  const kept = new Set([...ids].slice(0, MOST_NODES))
  return {
    ids: [...kept],
    edges: [...unique.values()].filter(({ from_id, to_id }) => kept.has(from_id) && kept.has(to_id)),
    leftOut: ids.size - kept.size,
  }
}

/** The upper left corner of each node. */
export function placesOf({ ids, edges }: Pick<Around, 'ids' | 'edges'>): Map<string, { x: number; y: number }> {
  const graph = new Graph({ multigraph: true })
  graph.setGraph({ rankdir: 'LR', ranksep: 90, nodesep: 18 })
  for (const id of ids) graph.setNode(id, { ...NODE })
  for (const { id, from_id, to_id } of edges) graph.setEdge(from_id, to_id, {}, id)
  layout(graph)
  return new Map(
    ids.map((id) => {
      const { x = 0, y = 0 } = graph.node(id)
      return [id, { x: x - NODE.width / 2, y: y - NODE.height / 2 }]
    }),
  )
}
