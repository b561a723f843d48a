// The place of a task in the tree of its flow, told from its id: by the name of a node, or by the path to it, as the
// machine made it. The order of tasks follows from their places.
import type { FlowNode, Work } from '../kernel/flow.ts'

export interface Place {
  kind: 'agent' | 'function'
  parentId: string | null
  /** From the root: the key of each child, and its turn among its siblings. */
  way: { key: string; turn: number }[]
  /** The attempt of the patterns around the task; empty for the first. */
  life: string
}

export interface PlannedTask {
  id: string
  name: string
}

export interface Places {
  placeOf(taskId: string): Place
  /** The leaves that will begin as far as the tree alone can say, in its order. */
  planned(): PlannedTask[]
}

interface Spot {
  node: FlowNode
  key: string
  parent: Spot | null
}

export function createPlaces(root: FlowNode): Places {
  const named = new Map<string, Spot>()
  const top: Spot = { node: root, key: 'root', parent: null }
  const plan: PlannedTask[] = []
  const children = new Map<FlowNode, ReadonlyMap<string, FlowNode | string>>()
  note(top, 'root', true)
  return { placeOf, planned: () => plan }

  function note(spot: Spot, way: string, isPlanned: boolean): void {
    const { node } = spot
    const id = node.id ?? way
    if (node.id !== undefined) named.set(node.id, spot)
    if (node.type === 'task') {
      if (isPlanned) plan.push({ id, name: node.id ?? ('agent' in node ? node.agent : node.function) })
      return
    }
    const isPlain = node.type === 'sequential' || node.type === 'parallel' || node.type === 'loop'
    const below = new Map(childrenOf(node))
    children.set(node, below)
    for (const [key, child] of below) {
      if (typeof child === 'string') continue
      const isOwn = isPlain && /^\d+$/.test(key)
      note({ node: child, key, parent: spot }, `${id}/${key}`, isPlanned && isOwn)
    }
  }

  function placeOf(taskId: string): Place {
    const [head = '', ...keys] = taskId.split('/')
    const [, name = '', marks = ''] = /^(.*?)((?:[#~]\d+)*)$/.exec(head) ?? []
    const spot = named.get(name) ?? top
    const trail = trailOf(spot, marks)
    const all = [...trail.keys, ...keys.map((key) => key.replace(/~.*$/, ''))]
    const { way, work } = walk(root, all, children)
    return {
      kind: work !== null && typeof work === 'object' && 'agent' in work ? 'agent' : 'function',
      parentId: keys.length > 0 ? [head, ...keys.slice(0, -1)].join('/') : trail.parentId,
      way,
      life: (taskId.match(/~\d+/g) ?? []).join('').replace(/(?:~1)+$/, ''),
    }
  }
}

/** The marks behind a name say which iteration and which attempt of the nodes around it, the outermost first. */
function trailOf({ node, key, parent }: Spot, marks: string): { id: string; parentId: string | null; keys: string[] } {
  const life = node.type !== 'task' && node.retry ? (/~\d+$/.exec(marks)?.[0] ?? '') : ''
  const own = /^(?:[#~]1(?!\d))*$/.test(marks) ? '' : marks
  const inWay = life === '~1' ? '' : life
  if (!parent) return { id: node.id === undefined ? `root${inWay}` : `${node.id}${own}`, parentId: null, keys: [] }
  const outer = marks.slice(0, marks.length - life.length)
  const isBody = parent.node.type === 'loop' && key === '1'
  const round = isBody ? (/#(\d+)$/.exec(outer) ?? null) : null
  const up = trailOf(parent, round ? outer.slice(0, -round[0].length) : outer)
  const place = round?.[1] ?? key
  const id = node.id === undefined ? `${up.id}/${place}${inWay}` : `${node.id}${own}`
  return { id, parentId: up.id, keys: [...up.keys, place] }
}

/** Walks down from the root by keys, also through parts, pieces and iterations, which only the run has made. */
function walk(
  root: FlowNode,
  keys: readonly string[],
  children: ReadonlyMap<FlowNode, ReadonlyMap<string, FlowNode | string>>,
): { way: Place['way']; work: FlowNode | string | null } {
  let at: FlowNode | string | null = root
  const way: Place['way'] = []
  for (const key of keys) {
    const node: FlowNode | null = typeof at === 'string' ? null : at
    way.push({ key, turn: node ? turnOf(node, key) : 0 })
    at = node ? childAt(node, key, children.get(node) ?? new Map()) : null
  }
  return { way, work: at }
}

function childrenOf(node: FlowNode): [key: string, child: FlowNode | string][] {
  const some = (works: Record<string, Work | undefined>): [string, FlowNode | string][] =>
    Object.entries(works).flatMap(([key, work]) => (work === undefined ? [] : [[key, work]]))
  const numbered = (nodes: readonly FlowNode[]): [string, FlowNode][] =>
    nodes.map((child, place) => [String(place), child])
  switch (node.type) {
    case 'task':
    case 'hierarchical':
      return []
    case 'sequential':
      return numbered(node.steps)
    case 'parallel':
      return [...numbered(node.branches), ...some({ aggregate: node.aggregate })]
    case 'loop':
      return [['1', node.body], ...some({ 'until 1': node.until })]
    case 'map_reduce':
      return some({ 'map 0': node.map, partition: node.partition, 'reduce 0': node.reduce })
    case 'pipeline':
      return numbered(node.stages)
    case 'fork_join':
      return some({ should_split: node.should_split, split: node.split, solve: node.solve, join: node.join })
    case 'adaptive':
      return numbered(node.tasks)
  }
}

function childAt(
  node: FlowNode,
  key: string,
  children: ReadonlyMap<string, FlowNode | string>,
): FlowNode | string | null {
  // A piece of a problem is worked on as the whole is.
  if (node.type === 'fork_join' && /^(whole|\d+)$/.test(key)) return node
  const like = node.type === 'loop' || node.type === 'map_reduce' ? firstOfItsKind(key) : key
  return children.get(like) ?? null
}

/** Iterations and parts are many, and all look like the first. */
function firstOfItsKind(key: string): string {
  if (/^\d+$/.test(key)) return '1'
  if (key.startsWith('until')) return 'until 1'
  return key.startsWith('map') || key.startsWith('reduce') ? `${key.split(' ')[0]} 0` : key
}

const MAP_TURNS = ['items', 'map', 'partition', 'reduce']
/** The queen plans, workers work while she oversees them, she reviews; then comes the next round. */
const QUEEN_TURNS: Readonly<Record<string, number | undefined>> = { plan: 0, review: 2 }
const PIECE_TURNS: Readonly<Record<string, number | undefined>> = {
  should_split: 0,
  split: 1,
  solve: 1,
  join: 3,
}

/** Siblings of the same turn run at the same time; those of a later turn wait for them. */
function turnOf(node: FlowNode, key: string): number {
  const [word = '', number] = key.split(' ')
  switch (node.type) {
    case 'sequential':
    case 'pipeline':
      return Number(key) || 0
    case 'parallel':
      return key === 'aggregate' ? 1 : 0
    case 'loop':
      return word === 'until' ? 2 * Number(number) + 1 : 2 * Number(key)
    case 'map_reduce':
      return MAP_TURNS.indexOf(word)
    case 'fork_join':
      return PIECE_TURNS[key] ?? 2
    case 'hierarchical':
      return 3 * Number(number) + (QUEEN_TURNS[word] ?? 1)
    default:
      return 0
  }
}
