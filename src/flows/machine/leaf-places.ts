// The place of a leaf in the tree of its flow, computed from its id, which names its node or gives the path to it.
import { type FlowNode, isLeaf } from '../../kernel/flow.ts'
import { format, idBelow, idOfNamed, isAttempt, isIteration, type Mark, numberIn, parse, ROOT } from './leaf-id.ts'
import { type Pattern, type Patterns, SELF } from './pattern.ts'

export interface Place {
  kind: 'agent' | 'function'
  /** The node of the tree; null if a pattern made the leaf. */
  node: FlowNode | null
  parentId: string | null
  /** The way from the root: the key of each child, and its turn among its siblings. */
  way: { key: string; turn: number }[]
  /** The attempts of the patterns around the leaf; empty for the first attempt. */
  life: string
}

interface PlannedLeaf {
  id: string
  name: string
}

export interface Places {
  placeOf(leafId: string): Place
  /** The leaves that will begin, in the order of the tree, as far as the tree alone can say. */
  planned(): PlannedLeaf[]
}

interface Spot {
  node: FlowNode
  key: string
  /** True if the node begins anew in each iteration of the node around it. */
  isRepeated: boolean
  parent: Spot | null
}

/** A leaf or a node by the key of its part; the name of a function stands for a leaf. */
type Children = ReadonlyMap<string, FlowNode | string>

export function createPlaces(root: FlowNode, patterns: Patterns): Places {
  const named = new Map<string, Spot>()
  const top: Spot = { node: root, key: ROOT, isRepeated: false, parent: null }
  const plan: PlannedLeaf[] = []
  const children = new Map<FlowNode, Children>()
  note(top, ROOT, true)
  return { placeOf, planned: () => plan }

  function note(spot: Spot, way: string, isPlanned: boolean): void {
    const { node } = spot
    const id = node.id ?? way
    if (node.id !== undefined) named.set(node.id, spot)
    if (isLeaf(node)) {
      if (isPlanned) plan.push({ id, name: node.id ?? ('agent' in node ? node.agent : node.function) })
      return
    }
    const below = new Map<string, FlowNode | string>()
    children.set(node, below)
    for (const part of patterns.of(node)?.parts(node) ?? []) {
      if (!('key' in part)) continue
      const { key } = part
      const child = 'node' in part ? part.node : part.work
      below.set(key, child)
      if (typeof child === 'string') continue
      const isRepeated = 'isRepeated' in part
      note({ node: child, key, isRepeated, parent: spot }, idBelow(id, key), isPlanned && 'node' in part)
    }
  }

  function placeOf(leafId: string): Place {
    const id = parse(leafId)
    const { name, marks, keys } = id
    const trail = trailOf(named.get(name) ?? top, marks)
    const { way, node } = walk([...trail.keys, ...keys.map(({ key }) => key)])
    const below = keys.flatMap(({ attempt }) => (attempt > 1 ? attempt : []))
    const attempts = [...marks.filter(isAttempt).map(numberIn), ...below]
    return {
      kind: node && 'agent' in node ? 'agent' : 'function',
      node,
      parentId: keys.length > 0 ? format({ ...id, keys: keys.slice(0, -1) }) : trail.parentId,
      way,
      life: attempts.slice(0, attempts.findLastIndex((attempt) => attempt > 1) + 1).join(' '),
    }
  }

  /** Walks down from the root by keys, also through parts, pieces and iterations, which only the run has made. */
  function walk(keys: readonly string[]): Pick<Place, 'way' | 'node'> {
    let at: FlowNode | string | null = root
    const way: Place['way'] = []
    for (const key of keys) {
      const node: FlowNode | null = typeof at === 'string' ? null : at
      const pattern: Pattern | undefined = node ? patterns.of(node) : undefined
      way.push({ key, turn: pattern?.turnOf?.(key) ?? 0 })
      const like: string = pattern?.partKey?.(key) ?? key
      at = node && (like === SELF ? node : (children.get(node)?.get(like) ?? null))
    }
    return { way, node: typeof at === 'string' ? null : at }
  }
}

/** The marks behind a name tell the iteration and the attempt of each node around it, the outermost first. */
function trailOf({ node, key, isRepeated, parent }: Spot, marks: readonly Mark[]): Trail {
  if (!parent) return { id: idOfNamed(node.id ?? ROOT, marks), parentId: null, keys: [] }
  const isTriedAgain = !isLeaf(node) && node.retry !== undefined
  const [attempt, outer] = isTriedAgain ? lastOf(marks, isAttempt) : [undefined, marks]
  const [iteration, around] = isRepeated ? lastOf(outer, isIteration) : [undefined, outer]
  const up = trailOf(parent, around)
  const place = iteration === undefined ? key : String(iteration)
  const id = node.id === undefined ? idBelow(up.id, place, attempt) : idOfNamed(node.id, marks)
  return { id, parentId: up.id, keys: [...up.keys, place] }
}

interface Trail {
  id: string
  parentId: string | null
  keys: string[]
}

/** The number in the last mark, if the mark is of this kind, and the marks before it. */
function lastOf(marks: readonly Mark[], isOfKind: (mark: Mark) => boolean): [number | undefined, readonly Mark[]] {
  const last = marks.at(-1)
  return last !== undefined && isOfKind(last) ? [numberIn(last), marks.slice(0, -1)] : [undefined, marks]
}
