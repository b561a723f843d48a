import type { Problem } from '../../kernel/explain-issue.ts'
import { type FlowNode, isLeaf, type Leaf } from '../../kernel/flow.ts'
import type { Patterns } from '../machine/pattern.ts'
import { placeholdersIn } from '../machine/placeholders.ts'
import { argumentProblems } from './built-in-functions.ts'
import { pathTo } from './validate.ts'

/** A flow may hold a hundred thousand leaves. */
const MOST_WARNINGS = 100

/**
 * The arguments with which a function of Muster's own can only fail, in a flow that is valid. Such a flow may be stored
 * and started all the same. What a placeholder fills in is not known before the run, so that nothing is said about it.
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
      else if ('source' in part) yield [part.source, at]
      else if ('work' in part && typeof part.work !== 'string') yield [part.work, at]
    }
  }
}

function warningsOf(leaf: Leaf, path: string): Problem[] {
  // Without arguments the function is given what came before it.
  if (!('function' in leaf) || leaf.args === undefined) return []
  const problems = argumentProblems(leaf.function, leaf.args)
  if (problems.length === 0) return []
  const filledIn = placeholdersIn(leaf.args).map(({ at }) => at)
  return problems
    .filter(({ path: wrong }) => !filledIn.some((at) => isAt(wrong, at)))
    .map((problem) => ({ path: pathTo(path, problem.path), message: problem.message }))
}

/** True: the problem may be gone once the placeholder is filled in. */
function isAt(wrong: readonly PropertyKey[], placeholder: readonly PropertyKey[]): boolean {
  // Of arguments that are an object a wrong name is told, which no value within them mends.
  if (wrong.length === 0) return placeholder.length === 0
  const shared = Math.min(wrong.length, placeholder.length)
  return wrong.slice(0, shared).every((part, index) => part === placeholder[index])
}
