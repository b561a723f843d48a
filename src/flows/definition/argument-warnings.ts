import type { Problem } from '../../kernel/explain-issue.ts'
import { type FlowNode, isLeaf, type Leaf } from '../../kernel/flow.ts'
import type { Patterns } from '../machine/pattern.ts'
import { onlyBraces, type PlaceholderUse, placeholdersIn } from '../machine/placeholders.ts'
import { argumentProblems } from './built-in-functions.ts'
import { pathTo } from './validate.ts'

/** A flow may hold a hundred thousand leaves. */
const MOST_WARNINGS = 100

/**
 * Tells the arguments with which a function of Muster's own can only fail, in a flow that is valid. Such a flow may be
 * stored and started all the same. A placeholder may be filled in with anything, so nothing is said about its place.
 */
export function argumentWarnings(root: FlowNode, patterns: Patterns): Problem[] {
  const warnings: Problem[] = []
  for (const [leaf, path] of leavesIn(root, 'root', patterns)) {
    warnings.push(...warningsOf(leaf, `${path}.args`))
    if (warnings.length >= MOST_WARNINGS) break
  }
  return warnings.slice(0, MOST_WARNINGS)
}

function* leavesIn(node: FlowNode, path: string, patterns: Patterns): Generator<[Leaf, path: string]> {
  if (isLeaf(node)) yield [node, path]
  else {
    for (const part of patterns.of(node)?.parts(node) ?? []) {
      const at = pathTo(path, part.index === undefined ? [part.field] : [part.field, part.index])
      if ('node' in part) yield* leavesIn(part.node, at, patterns)
      // The field of a source names its function; the arguments stand beside it.
      else if ('source' in part) yield [part.source, at.replace(/\.function$/, '')]
      else if ('work' in part && typeof part.work !== 'string') yield [part.work, at]
    }
  }
}

function warningsOf(leaf: Leaf, path: string): Problem[] {
  // Without arguments the function is given the result that came before it.
  if (!('function' in leaf) || leaf.args === undefined) return []
  const problems = argumentProblems(leaf.function, leaf.args)
  if (problems.length === 0) return []
  const open = placeholdersIn(leaf.args).flatMap(({ at }) => (isOpen(leaf.args, at) ? [at] : []))
  return problems
    .filter(({ path: wrong }) => !open.some((at) => at.every((part, index) => part === wrong[index])))
    .map((problem) => ({ path: pathTo(path, problem.path), message: problem.message }))
}

/** True: the text is one placeholder, whose value may be of any kind. A text around placeholders stays a text. */
function isOpen(args: unknown, at: PlaceholderUse['at']): boolean {
  const value = at.reduce<unknown>((inside, part) => Object(inside)[part], args)
  return typeof value === 'string' && onlyBraces(value) !== null
}
