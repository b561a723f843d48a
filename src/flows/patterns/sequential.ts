import type { Sequential } from '../../kernel/flow.ts'
import { endOf, failed, type Pattern } from '../pattern.ts'

/** Runs the steps one after the other, each with the result of the one before. A step that fails ends the node. */
export const sequential: Pattern<Sequential> = ({ node, previous, children, open }) => {
  if (open > 0) return 'wait'
  const place = children.size
  const last = place === 0 ? null : children.get(String(place - 1))
  if (last?.status === 'failed') return { end: failed(last.error) }
  const value = last ? last.value : previous
  const next = node.steps[place]
  if (!next) return { end: endOf(value, children.values()) }
  return { start: [{ key: String(place), node: next, previous: value }] }
}
