// Changes of a tree: each gives the new tree and the path of the node to choose next, or null if it cannot be done.
import { ON_PREVIOUS, type Slot, shapeOf, slotsOf } from './patterns.ts'
import {
  childrenOf,
  idsIn,
  isLeafNode,
  isNode,
  pathAt,
  placeOf,
  slotAt,
  type TreeNode,
  valueAt,
  withValue,
} from './tree.ts'

export interface Edit {
  root: unknown
  path: string
}

export const blankAgent: TreeNode = { type: 'task', agent: '' }
export const blankFunction: TreeNode = {
  type: 'task',
  function: 'muster.ask',
  args: { prompt: ON_PREVIOUS },
}

/** Whether the slot may hold the node. The root, which has no slot, holds any node. */
export function fits(slot: Slot | null, node: unknown): boolean {
  if (slot === null || slot.kind === 'nodes' || slot.kind === 'node') return isNode(node)
  return isLeafNode(node) || (slot.kind === 'work' && typeof node === 'string')
}

const holdsMany = ({ kind }: Slot): boolean => kind === 'nodes' || kind === 'leaves'

/** Puts the node at the end of the list of the chosen pattern. */
export function addInside(root: unknown, path: string, node: TreeNode): Edit | null {
  const around = valueAt(root, path)
  if (!isNode(around)) return null
  const slot = slotsOf(around.type).find((each) => holdsMany(each) && fits(each, node))
  if (slot) return inserted(root, path, slot.name, listIn(around, slot.name).length, node)
  const single = slotsOf(around.type).find((each) => around[each.name] === undefined && fits(each, node))
  if (!single) return null
  const to = pathAt(path, single.name)
  return { root: withValue(root, to, node), path: to }
}

/** Puts the node after the chosen one. If there is room for one node only, both become the steps of a sequence. */
export function addAfter(root: unknown, path: string, node: TreeNode): Edit | null {
  const place = placeOf(path)
  const slot = slotAt(root, path)
  if (place && place.index !== null && slot && fits(slot, node)) {
    return inserted(root, place.parent, place.field, place.index + 1, node)
  }
  const sequence = { type: 'sequential', steps: [valueAt(root, path), node] }
  if ((place && place.index !== null) || !fits(slot, sequence) || !isNode(valueAt(root, path))) return null
  return { root: withValue(root, path, sequence), path: pathAt(path, 'steps', 1) }
}

/** Adds the node where people expect it: inside a chosen pattern, else after the chosen leaf. */
export const addNode = (root: unknown, path: string, node: TreeNode): Edit | null =>
  (isLeafNode(valueAt(root, path)) ? null : addInside(root, path, node)) ?? addAfter(root, path, node)

export function removeNode(root: unknown, path: string): Edit | null {
  const place = placeOf(path)
  if (place === null) return null
  const left = withValue(root, path, undefined)
  const list = place.index === null ? [] : listIn(valueAt(left, place.parent), place.field)
  const index = Math.min(place.index ?? 0, list.length - 1)
  return { root: left, path: index < 0 ? place.parent : pathAt(place.parent, place.field, index) }
}

/** A copy after the original. The ids of the copy are new, and its templates name the new ones. */
export function duplicateNode(root: unknown, path: string): Edit | null {
  const place = placeOf(path)
  const node = valueAt(root, path)
  if (!place || place.index === null || !isNode(node)) return null
  return inserted(root, place.parent, place.field, place.index + 1, withNewIds(node, idsIn(root)))
}

/** The nodes of a tree from elsewhere, with ids that the flow does not have yet. */
export function withNewIds(node: TreeNode, taken: readonly string[]): TreeNode {
  const used = new Set(taken)
  const names = new Map<string, string>()
  for (const id of idsIn(node)) {
    let next = id
    for (let count = 2; used.has(next); count++) next = `${id.replace(/_\d+$/, '').slice(0, 58)}_${count}`
    used.add(next)
    if (next !== id) names.set(id, next)
  }
  return names.size === 0 ? node : (renamed(node, names) as TreeNode) // a node stays a node
}

function renamed(value: unknown, names: ReadonlyMap<string, string>, key = ''): unknown {
  if (typeof value === 'string') {
    if (key === 'id') return names.get(value) ?? value
    return value.replaceAll(
      /(\{\{\s*results\.)([A-Za-z0-9_-]+)/g,
      (_, begin: string, id: string) => begin + (names.get(id) ?? id),
    )
  }
  if (Array.isArray(value)) return value.map((each: unknown) => renamed(each, names))
  if (!isNode(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, renamed(each, names, name)]))
}

export function moveNode(root: unknown, path: string, by: 1 | -1): Edit | null {
  const place = placeOf(path)
  if (!place || place.index === null) return null
  const list = [...listIn(valueAt(root, place.parent), place.field)]
  const to = place.index + by
  if (to < 0 || to >= list.length) return null
  list.splice(to, 0, ...list.splice(place.index, 1))
  return {
    root: withValue(root, pathAt(place.parent, place.field), list),
    path: pathAt(place.parent, place.field, to),
  }
}

/** Takes the node out of the pattern around it, to the place after that pattern. */
export function moveOut(root: unknown, path: string): Edit | null {
  const place = placeOf(path)
  const node = valueAt(root, path)
  const outer = place && placeOf(place.parent)
  if (!outer || outer.index === null || !isNode(node) || !fits(slotAt(root, place.parent), node)) return null
  const without = withValue(root, path, undefined)
  return inserted(without, outer.parent, outer.field, outer.index + 1, node)
}

/** Puts the node at the end of the pattern before it. */
export function moveIn(root: unknown, path: string): Edit | null {
  const place = placeOf(path)
  const node = valueAt(root, path)
  if (!place?.index || !isNode(node)) return null
  const before = pathAt(place.parent, place.field, place.index - 1)
  if (isLeafNode(valueAt(root, before))) return null
  return addInside(withValue(root, path, undefined), before, node)
}

/** The pattern around the node, where the pattern may stand and can hold the node. */
export function wrapNode(root: unknown, path: string, type: string): Edit | null {
  const node = valueAt(root, path)
  if (!isNode(node) || type === 'hierarchical') return null
  const shape = shapeOf(type)
  const slot = slotsOf(type).find((each) => each.name === WRAPPED_IN[type] && fits(each, node))
  if (!shape || !slot) return null
  const wrapped = { ...shape.blank, [slot.name]: holdsMany(slot) ? [node] : node }
  return fits(slotAt(root, path), wrapped) ? { root: withValue(root, path, wrapped), path } : null
}

const WRAPPED_IN: Readonly<Record<string, string>> = {
  sequential: 'steps',
  parallel: 'branches',
  loop: 'body',
  map_reduce: 'map',
  pipeline: 'stages',
  fork_join: 'solve',
  adaptive: 'tasks',
}

/** The nodes of a pattern in its place. */
export function unwrapNode(root: unknown, path: string): Edit | null {
  const place = placeOf(path)
  const slot = slotAt(root, path)
  const inner = childrenOf(valueAt(root, path), path).map(({ value }) => value)
  const [first] = inner
  if (first === undefined || !inner.every((each) => fits(slot, each))) return null
  if (!place || place.index === null) return inner.length === 1 ? { root: withValue(root, path, first), path } : null
  const list = [...listIn(valueAt(root, place.parent), place.field)]
  list.splice(place.index, 1, ...inner)
  return { root: withValue(root, pathAt(place.parent, place.field), list), path }
}

/** The node as another pattern, with all that fits the new one; `lost` counts the nodes that do not. */
export function asPattern(node: TreeNode, type: string): { node: TreeNode; lost: number } {
  const shape = shapeOf(type)
  if (!shape || node.type === type) return { node, lost: 0 }
  const inner = isLeafNode(node) ? [node] : childrenOf(node, '').map(({ value }) => value)
  const shared = isLeafNode(node) ? [] : ['id', 'retry', 'timeout', 'workers']
  const kept = Object.fromEntries(
    shared.flatMap((name) =>
      node[name] === undefined || !isKept(name, node, shape.blank) ? [] : [[name, node[name]]],
    ),
  )
  const next: Record<string, unknown> = { ...shape.blank, ...kept }
  const home = slotsOf(type).find(({ name }) => name === WRAPPED_IN[type])
  const fitting = home ? inner.filter((each) => isNode(each) && fits(home, each)) : []
  if (home && fitting.length > 0) next[home.name] = holdsMany(home) ? fitting : fitting[0]
  const held = home && holdsMany(home) ? fitting.length : Math.min(1, fitting.length)
  return { node: next, lost: inner.length - held }
}

/** The workers of some patterns are a number, those of others are names. */
const isKept = (name: string, node: TreeNode, blank: TreeNode): boolean =>
  name !== 'workers' || typeof node.workers === typeof blank.workers

const listIn = (node: unknown, field: string): readonly unknown[] => {
  const list = isNode(node) ? node[field] : undefined
  return Array.isArray(list) ? list : []
}

function inserted(root: unknown, parent: string, field: string, index: number, node: TreeNode): Edit {
  const list = [...listIn(valueAt(root, parent), field)]
  list.splice(index, 0, node)
  return { root: withValue(root, pathAt(parent, field), list), path: pathAt(parent, field, index) }
}
