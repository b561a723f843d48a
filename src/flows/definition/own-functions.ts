import type { FlowNode } from '../../kernel/flow.ts'
import { leafOf } from '../machine/move.ts'
import type { Part, Pattern, Patterns } from '../machine/pattern.ts'
import { visit } from '../machine/tree.ts'

/** Stages and sources, which the owner of the flow run calls itself. Any process may call the other functions. */
export function ownFunctions(root: FlowNode, patterns: Patterns): string[] {
  const names = new Set<string>()
  visit(root, patterns, (_, pattern, parts) => {
    for (const part of parts) {
      const leaf = ownLeaf(part, pattern)
      if (leaf && 'function' in leaf) names.add(leaf.function)
    }
  })
  return [...names].toSorted()
}

function ownLeaf(part: Part, { stream }: Pattern) {
  if ('source' in part) return part.source
  return stream && 'work' in part ? leafOf(part.work) : null
}
