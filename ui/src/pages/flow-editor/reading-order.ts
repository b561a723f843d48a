// The database keeps the fields of a tree in an order of its own. People read them in the order of the guide.
import { functionCalled } from './functions.ts'
import { shapeOf, slotsOf } from './patterns.ts'
import { isNode, type TreeNode } from './tree.ts'

const FIRST = ['type', 'id', 'agent', 'input', 'function', 'args']
const LAST = ['retry', 'timeout']

export function inReadingOrder(value: unknown): unknown {
  if (!isNode(value)) return value
  const slots = slotsOf(value.type)
  const fields = shapeOf(value.type)?.fields.map(({ name }) => name) ?? []
  const ordered = sorted(value, [...FIRST, ...fields], LAST)
  return Object.fromEntries(
    Object.entries(ordered).map(([name, inner]) => {
      if (name === 'args')
        return [name, isNode(inner) ? sorted(inner, functionCalled(value.function)?.args ?? []) : inner]
      if (!slots.some((slot) => slot.name === name)) return [name, inner]
      return [name, Array.isArray(inner) ? inner.map(inReadingOrder) : inReadingOrder(inner)]
    }),
  )
}

/** The named fields first or last, all others between them as they are. */
function sorted(node: TreeNode, first: readonly string[], last: readonly string[] = []): TreeNode {
  const names = Object.keys(node)
  const between = names.filter((name) => !first.includes(name) && !last.includes(name))
  const order = [
    ...first.filter((name) => names.includes(name)),
    ...between,
    ...last.filter((name) => names.includes(name)),
  ]
  return Object.fromEntries(order.map((name) => [name, node[name]]))
}
