import { DEEPEST_FORK, type ForkJoin } from '../../kernel/flow.ts'
import { endOf, failed, leafOf, type Move, type Outcome, type Pattern, type Piece, type Standing } from '../pattern.ts'

/**
 * A problem that is too large is split, its parts are solved or split again, and what they give is joined, up to the top.
 * Each piece is a node of its own, so that what becomes of one concerns only those above it.
 */
export const forkJoin: Pattern<ForkJoin> = ({ node, previous, children, open, render }) => {
  if (open > 0) return 'wait'
  const whole = children.get('whole')
  if (whole) return { end: whole }
  const piece: Piece = { type: 'piece', of: node, problem: render(node.problem), depth: 0 }
  return { start: [{ key: 'whole', node: piece, previous }] }
}

/** Asks, then either solves, or splits, waits for the parts and joins what they give, in their order. */
export const piece: Pattern<Piece> = (standing) => {
  const { node, children, open } = standing
  if (open > 0) return 'wait'
  const failure = [...children.values()].find((child) => child?.status === 'failed')
  if (failure) return { end: failed(failure.error ?? 'A piece failed.') }
  const isLarge = children.get('should_split')
  if (!isLarge) return ask(standing, 'should_split', node.problem)
  if (!isTrue(isLarge.value) || node.depth >= DEEPEST_FORK) {
    const solved = children.get('solve')
    return solved ? { end: endOf(solved.value, [solved]) } : ask(standing, 'solve', node.problem)
  }
  const parts = children.get('split')
  if (!parts) return ask(standing, 'split', node.problem)
  return join(standing, Array.isArray(parts.value) ? parts.value : [parts.value])
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
