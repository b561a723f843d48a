// The source of the things that a pattern works on: a list, a placeholder, or a function that gives them.
import type { FunctionLeaf } from '../../kernel/flow.ts'
import { callOf } from './move.ts'
import type { Part } from './pattern.ts'
import { onlyBraces } from './placeholders.ts'

/** The function, if the source is one. A text that is no placeholder is the name of a function. */
export function sourceLeaf(source: unknown): FunctionLeaf | null {
  if (typeof source === 'string') return source.includes('{{') ? null : callOf(source)
  if (source === null || typeof source !== 'object' || !('function' in source)) return null
  const { function: name, args } = source as { function: string; args?: unknown } // checked by validateFlow
  return callOf(name, args)
}

export function sourceParts(field: string, source: unknown): Part[] {
  if (Array.isArray(source)) return [{ field, given: source }]
  if (typeof source === 'string' && !source.includes('{{')) return [{ field, source: callOf(source) }]
  if (typeof source === 'string' && onlyBraces(source) !== null) return [{ field, given: source }]
  if (source !== null && typeof source === 'object' && 'function' in source && typeof source.function === 'string') {
    const args = 'args' in source ? source.args : undefined
    const given = args === undefined ? [] : [{ field: `${field}.args`, given: args }]
    return [{ field: `${field}.function`, source: callOf(source.function, args) }, ...given]
  }
  return [{ field, wrong: 'must be a list, a template such as {{input}}, or the name of a function' }]
}
