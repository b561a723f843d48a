// The places of the boxes of a graph. Each open group is a frame, in which its boxes stand in rows; around the frames
// the boxes stand in the order in which they wait for one another, from left to right.
import dagre from '@dagrejs/dagre'
import type { TaskRow } from './flow-store.ts'
import type { Unit } from './graph-groups.ts'

export interface Box {
  unit: Unit
  isOpen: boolean
  x: number
  y: number
  width: number
  height: number
}

export interface Graph {
  /** A frame comes before the boxes in it. */
  boxes: Box[]
  /** Between boxes by the ids of their units. */
  edges: { from: string; to: string }[]
}

interface Size {
  width: number
  height: number
}

/** A box at a place within the frame around it. */
interface Placed extends Box {
  inside: Placed[]
}

export const NODE: Size = { width: 168, height: 42 }
const GROUP: Size = { width: 230, height: 78 }
/** The room for the words of a frame. */
const HEAD = 34
const PADDING = 12
const GAP = 10
/** The gap in which arrows between boxes of one frame can be seen. */
const WIDE_GAP = 34
/** The shape of a frame: wider than high, as windows are. */
const SHAPE = 1.9

export function layOut(
  units: readonly Unit[],
  tasks: Iterable<Pick<TaskRow, 'id' | 'depends_on'>>,
  isOpen: (id: string) => boolean,
): Graph {
  const edges = edgesBetween(units, tasks, isOpen)
  const sized = units.map((unit) => place(unit, isOpen))
  const graph = new dagre.graphlib.Graph().setGraph({ rankdir: 'LR', nodesep: 10, ranksep: 56 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const { unit, width, height } of sized) graph.setNode(unit.id, { width, height })
  for (const { from, to } of edges) if (graph.hasNode(from) && graph.hasNode(to)) graph.setEdge(from, to)
  dagre.layout(graph)
  const placed = sized.map((box) => {
    const { x, y } = graph.node(box.unit.id)
    return { ...box, x: x - box.width / 2, y: y - box.height / 2 }
  })
  return { boxes: flat(placed, 0, 0), edges }
}

function place(unit: Unit, isOpen: (id: string) => boolean): Placed {
  const at = { unit, x: 0, y: 0 }
  if (unit.kind === 'task') return { ...at, ...NODE, isOpen: false, inside: [] }
  if (!isOpen(unit.id)) return { ...at, ...GROUP, isOpen: false, inside: [] }
  return {
    ...at,
    isOpen: true,
    ...inRows(
      unit.children.map((child) => place(child, isOpen)),
      unit.kind !== 'beside',
    ),
  }
}

/** Boxes in rows, as in a text. */
function inRows(boxes: readonly Placed[], hasEdges: boolean): Size & { inside: Placed[] } {
  const gap = hasEdges ? WIDE_GAP : GAP
  const area = boxes.reduce((sum, { width, height }) => sum + (width + gap) * (height + GAP), 0)
  const most = Math.max(Math.sqrt(area * SHAPE), ...boxes.map(({ width }) => width))
  const inside: Placed[] = []
  let [x, y, rowHeight, widest] = [0, 0, 0, 0]
  for (const box of boxes) {
    if (x > 0 && x + box.width > most) [x, y, rowHeight] = [0, y + rowHeight + GAP, 0]
    inside.push({ ...box, x: x + PADDING, y: y + HEAD })
    x += box.width + gap
    rowHeight = Math.max(rowHeight, box.height)
    widest = Math.max(widest, x - gap)
  }
  return { inside, width: Math.max(widest, GROUP.width) + 2 * PADDING, height: y + rowHeight + HEAD + PADDING }
}

const flat = (boxes: readonly Placed[], left: number, top: number): Box[] =>
  boxes.flatMap(({ inside, ...box }) => {
    const [x, y] = [left + box.x, top + box.y]
    return [{ ...box, x, y }, ...flat(inside, x, y)]
  })

/** An arrow into or out of a frame ends at the frame, so that a group of hundreds has one arrow and not hundreds. */
function edgesBetween(
  units: readonly Unit[],
  tasks: Iterable<Pick<TaskRow, 'id' | 'depends_on'>>,
  isOpen: (id: string) => boolean,
): Graph['edges'] {
  const ways = new Map<string, readonly string[]>()
  const walk = (level: readonly Unit[], around: readonly string[]): void => {
    for (const unit of level) {
      const way = [...around, unit.id]
      if (unit.kind !== 'task' && isOpen(unit.id)) walk(unit.children, way)
      else for (const id of unit.ids) ways.set(id, way)
    }
  }
  walk(units, [])
  const edges = new Map<string, { from: string; to: string }>()
  for (const { id, depends_on } of tasks) {
    const there = ways.get(id)
    for (const earlier of depends_on) {
      const here = ways.get(earlier)
      const place = here?.findIndex((unit, depth) => unit !== there?.[depth]) ?? -1
      const [from, to] = [here?.[place], there?.[place]]
      if (from !== undefined && to !== undefined) edges.set(`${from}\n${to}`, { from, to })
    }
  }
  return [...edges.values()]
}

export type Direction = 'ArrowLeft' | 'ArrowRight' | 'ArrowUp' | 'ArrowDown'

/** The nearest box in this direction, by the middles of the boxes; a frame has its place at its words. */
export function nearest(boxes: readonly Box[], from: Box, direction: Direction): Box | undefined {
  const isAcross = direction === 'ArrowLeft' || direction === 'ArrowRight'
  const sign = direction === 'ArrowLeft' || direction === 'ArrowUp' ? -1 : 1
  const start = middleOf(from)
  const distanceTo = (box: Box): number => {
    const { x, y } = middleOf(box)
    const ahead = sign * (isAcross ? x - start.x : y - start.y)
    const aside = Math.abs(isAcross ? y - start.y : x - start.x)
    // A box that is rather beside than ahead belongs to another direction.
    return ahead <= 1 || aside > 2 * ahead ? Number.POSITIVE_INFINITY : ahead + 2 * aside
  }
  const found = boxes.map((box) => ({ box, distance: distanceTo(box) })).toSorted((a, b) => a.distance - b.distance)[0]
  return found && Number.isFinite(found.distance) ? found.box : undefined
}

export const middleOf = ({ x, y, width, height, isOpen }: Box): { x: number; y: number } =>
  isOpen ? { x: x + GROUP.width / 2, y: y + HEAD / 2 } : { x: x + width / 2, y: y + height / 2 }
