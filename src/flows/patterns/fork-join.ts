import { DEEPEST_FORK, type ForkJoin, type FunctionLeaf } from '../../kernel/flow.ts'
import { endOf, failed, leafOf, type Move, type Outcome, type Pattern, type Piece, type Standing } from '../pattern.ts'

/**
 * A problem that is too large is split, its parts are solved or split again, and their solutions are joined, up to the
 * top. Each piece is a node of its own, so that the end of a piece concerns only the pieces above it.
 */
export const forkJoin: Pattern<ForkJoin> = ({ node, previous, children, open, render }) => {
  if (open > 0) return 'wait'
  const whole = children.get('whole')
  if (whole) return { end: whole }
  const problem = readProblem(node.problem, children.get('problem'), render)
  if ('source' in problem) return { start: [{ key: 'problem', node: problem.source, previous, isSource: true }] }
  if ('error' in problem) return { end: failed(problem.error) }
  const piece: Piece = { type: 'piece', of: node, problem: problem.value, depth: 0 }
  return { start: [{ key: 'whole', node: piece, previous }] }
}

/** The problem is a value, a template, or the result of a function, which is then the first child. */
function readProblem(
  problem: unknown,
  given: Outcome | null | undefined,
  render: (value: unknown) => unknown,
): { value: unknown } | { source: FunctionLeaf } | { error: string } {
  const source = problemSource(problem)
  if (!source) return { value: render(problem) }
  if (!given) return { source }
  return given.status === 'failed' ? { error: given.error } : { value: given.value }
}

/** Only an object with the key `function` is a function: a text is a problem in words. */
export function problemSource(problem: unknown): FunctionLeaf | null {
  if (problem === null || typeof problem !== 'object' || !('function' in problem)) return null
  const keys = Object.keys(problem)
  if (typeof problem.function !== 'string' || keys.some((key) => !['type', 'function', 'args'].includes(key)))
    return null
  return { type: 'task', function: problem.function, ...('args' in problem ? { args: problem.args } : {}) }
}

/** Asks whether the piece is too large, then solves it, or splits it, waits for its parts and joins them in order. */
export const piece: Pattern<Piece> = (standing) => {
  const { node, children, open } = standing
  if (open > 0) return 'wait'
  const failure = [...children.values()].find((child) => child?.status === 'failed')
  if (failure) return { end: failed(failure.error ?? 'A piece failed.') }
  const isLarge = children.get('should_split')
  if (!isLarge) return ask(standing, 'should_split', node.problem)
  if (isTrue(isLarge.value) && node.depth >= DEEPEST_FORK) {
    return { end: failed(`The problem was split ${DEEPEST_FORK} times over and is still too large.`) }
  }
  if (!isTrue(isLarge.value)) {
    const solved = children.get('solve')
    return solved ? { end: endOf(solved.value, [solved]) } : ask(standing, 'solve', node.problem)
  }
  const parts = children.get('split')
  if (!parts) return ask(standing, 'split', node.problem)
  if (!Array.isArray(parts.value) || parts.value.length === 0) {
    return { end: failed('split gave no list of parts.') }
  }
  return join(standing, parts.value)
}

function join(standing: Standing<Piece>, problems: readonly unknown[]): Move {
  const { node, previous, children } = standing
  const joined = children.get('join')
  if (joined) return { end: endOf(joined.value, children.values()) }
  const solved = problems.map((_, place) => children.get(String(place)))
  if (problems.length > 0 && solved[0] === undefined) {
    const { of, depth } = node
    return {
      start: problems.map((problem, place) => ({
        key: String(place),
        node: { type: 'piece', of, problem, depth: depth + 1 },
        previous,
      })),
    }
  }
  return ask(
    standing,
    'join',
    solved.map((part: Outcome | null | undefined) => part?.value),
  )
}

function ask(
  { node, previous }: Standing<Piece>,
  key: 'should_split' | 'split' | 'solve' | 'join',
  item: unknown,
): Move {
  return { start: [{ key, node: leafOf(node.of[key]), previous, item }] }
}

/** An agent answers in words. */
const isTrue = (value: unknown): boolean =>
  typeof value === 'string' ? /^\s*(true|yes)\b/i.test(value) : Boolean(value)
