// A flow's tree as JSON, and paths into it as the API writes them: root.steps[1].body. A tree may be wrong anywhere,
// for people are still writing it.
import { type Slot, shapeOf, slotsOf } from './patterns.ts'

export type TreeNode = Readonly<Record<string, unknown>>

export const isNode = (value: unknown): value is TreeNode =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const isLeafNode = (value: unknown): value is TreeNode => isNode(value) && value.type === 'task'

export interface Place {
  /** The path of the node around it. */
  parent: string
  field: string
  /** Null: the field holds one thing, not a list. */
  index: number | null
}

/** Null for the root. */
export function placeOf(path: string): Place | null {
  const [, parent, field, index] = /^(.*)\.([^.[\]]+)(?:\[(\d+)\])?$/s.exec(path) ?? []
  if (parent === undefined || field === undefined) return null
  return { parent, field, index: index === undefined ? null : Number(index) }
}

export const pathAt = (parent: string, field: string, index: number | null = null): string =>
  index === null ? `${parent}.${field}` : `${parent}.${field}[${index}]`

const stepsOf = (path: string): (string | number)[] =>
  Array.from(path.slice('root'.length).matchAll(/\.([^.[\]]+)|\[(\d+)\]/g), ([, name, index]) =>
    index === undefined ? String(name) : Number(index),
  )

export function valueAt(root: unknown, path: string): unknown {
  let value = root
  for (const step of stepsOf(path)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string | number, unknown>)[step] // looked up above
  }
  return value
}

/** The tree with another value at the path. Undefined takes the field or the entry away. */
export const withValue = (root: unknown, path: string, value: unknown): unknown => changed(root, stepsOf(path), value)

function changed(inside: unknown, [step, ...rest]: readonly (string | number)[], value: unknown): unknown {
  if (step === undefined) return value
  if (typeof step === 'number') {
    const list = Array.isArray(inside) ? [...inside] : []
    const next = changed(list[step], rest, value)
    list.splice(step, 1, ...(next === undefined ? [] : [next]))
    return list
  }
  const node = isNode(inside) ? inside : {}
  const next = changed(node[step], rest, value)
  if (next !== undefined) return { ...node, [step]: next }
  return Object.fromEntries(Object.entries(node).filter(([name]) => name !== step))
}

export interface Child {
  path: string
  slot: Slot
  value: unknown
}

/** The nodes, leaves and functions within a node. A word such as `merge` is none of them. */
export function childrenOf(node: unknown, path: string): Child[] {
  if (!isNode(node)) return []
  return slotsOf(node.type).flatMap((slot): Child[] => {
    const value = node[slot.name]
    if (slot.kind === 'nodes' || slot.kind === 'leaves') {
      const list = Array.isArray(value) ? value : []
      return list.map((each: unknown, index) => ({ path: pathAt(path, slot.name, index), slot, value: each }))
    }
    if (value === undefined || slot.choices?.includes(String(value))) return []
    return [{ path: pathAt(path, slot.name), slot, value }]
  })
}

export interface Row {
  path: string
  value: unknown
  depth: number
  /** Null for the root. */
  slot: Slot | null
  /** The place among its siblings, from 1. */
  position: number
  siblings: number
  hasChildren: boolean
  isFolded: boolean
}

/** The tree in the order in which people read it, without the nodes inside folded ones. */
export function rowsOf(root: unknown, folded: ReadonlySet<string> = new Set()): Row[] {
  const rows: Row[] = []
  const visit = (child: Omit<Child, 'slot'> & { slot: Slot | null }, depth: number, of: [number, number]): void => {
    const within = depth > DEEPEST ? [] : childrenOf(child.value, child.path)
    const isFolded = folded.has(child.path) && within.length > 0
    rows.push({ ...child, depth, position: of[0], siblings: of[1], hasChildren: within.length > 0, isFolded })
    if (!isFolded) for (const [index, each] of within.entries()) visit(each, depth + 1, [index + 1, within.length])
  }
  visit({ path: 'root', value: root, slot: null }, 0, [1, 1])
  return rows
}

/** Deeper trees are refused by the API. */
const DEEPEST = 40

/** The slot that holds the node at the path. Null for the root, and inside a node that is no pattern. */
export function slotAt(root: unknown, path: string): Slot | null {
  const place = placeOf(path)
  const around = place && valueAt(root, place.parent)
  return (isNode(around) && slotsOf(around.type).find(({ name }) => name === place?.field)) || null
}

/** The path, or that of the nearest node around it that is still there. */
export function nearestPath(root: unknown, path: string): string {
  if (path === 'root' || isInTree(root, path)) return path
  const place = placeOf(path)
  return place ? nearestPath(root, place.parent) : 'root'
}

function isInTree(root: unknown, path: string): boolean {
  const place = placeOf(path)
  if (place === null) return path === 'root'
  return (
    isInTree(root, place.parent) &&
    childrenOf(valueAt(root, place.parent), place.parent).some((child) => child.path === path)
  )
}

/** The name by which people know a node. */
export function titleOf(value: unknown): string {
  if (typeof value === 'string') return value || 'no function'
  if (!isNode(value)) return 'not a node'
  if (typeof value.id === 'string' && value.id !== '') return value.id
  if (value.type !== 'task') return shapeOf(value.type)?.label ?? String(value.type ?? 'no type')
  if ('agent' in value) return textOr(value.agent, 'no agent')
  return textOr(value.function, 'no function')
}

/** The kind of the node, shown beside its title. */
export function kindOf(value: unknown): string {
  if (typeof value === 'string') return 'function'
  if (!isNode(value)) return 'wrong'
  const hasId = typeof value.id === 'string' && value.id !== ''
  if (value.type !== 'task') return shapeOf(value.type) ? (hasId ? labelOf(value) : '') : 'unknown'
  const [kind, name] = 'agent' in value ? ['agent', value.agent] : ['function', value.function]
  return hasId ? `${kind} ${textOr(name, '')}`.trim() : String(kind)
}

const labelOf = (node: TreeNode): string => shapeOf(node.type)?.label.toLowerCase() ?? ''

const textOr = (value: unknown, other: string): string => (typeof value === 'string' && value !== '' ? value : other)

/** The ids of all nodes, for templates such as {{results.poem}}. */
export const idsIn = (root: unknown): string[] =>
  rowsOf(root).flatMap(({ value }) =>
    isNode(value) && typeof value.id === 'string' && value.id !== '' ? [value.id] : [],
  )
