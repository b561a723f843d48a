import { z } from 'zod'
import { countField, type FunctionLeaf, type PatternNode, sharedFields, workField } from '../../../kernel/flow.ts'
import { kindOf } from '../../../kernel/kind-of.ts'
import { isTrue } from '../is-true.ts'
import { callOf, endOf, failed, leafOf, type Move, type NodeOutcome, type NodeState } from '../move.ts'
import {
  type MadePattern,
  type Part,
  type Pattern,
  type PatternGuide,
  SELF,
  workerNames,
  workPart,
} from '../pattern.ts'
import {
  condensingCalls,
  FEWEST_WORKERS,
  itemsOf,
  MOST_NAMED_WORKERS,
  MOST_WORKERS,
  promptOf,
  type Suits,
} from '../workload.ts'

const DEEPEST_FORK = 25
const MOST_PIECES = 100_000

const schema = z.strictObject({
  type: z.literal('fork_join'),
  ...sharedFields,
  problem: z.unknown(),
  should_split: workField,
  split: workField,
  solve: workField,
  join: workField,
  workers: countField,
  stealing: z.boolean().default(true),
})
export type ForkJoin = z.infer<typeof schema>
export type ForkJoinInput = z.input<typeof schema>

/** A part of a problem. People do not write it: the fork makes it. */
interface Piece extends PatternNode {
  type: 'piece'
  of: ForkJoin
  problem: unknown
  depth: number
}

const works = ['should_split', 'split', 'solve', 'join'] as const
const TURNS: Readonly<Record<string, number | undefined>> = { should_split: 0, split: 1, solve: 1, join: 3 }

/** Asks whether the piece is too large, then solves it, or splits it, waits for its parts and joins them in order. */
const piece: MadePattern<Piece> = {
  next: nextOfPiece,
  most: MOST_PIECES,
  tooMany: `The problem was split into more than ${MOST_PIECES} pieces.`,
}

/** The number of items of a large problem that one call solves. */
const PIECE_SIZE = 10

const guide: PatternGuide = {
  text: 'Splits a problem into pieces until they are small enough, solves the pieces, and joins the results. Each piece is asked about by `should_split`: a piece that is too large is split, and its parts are treated the same way. Each of the four finds the piece in `{{item}}`, and `join` finds the results of the parts, in their order. The output is the result of the outermost join.',
  fields: {
    problem: 'The whole problem: a value or a template.',
    should_split:
      'A function or leaf that answers true, or a text that begins with yes, true or done, while the piece is too large. Every other answer means that it is small enough.',
    split: 'A function or leaf that answers the list of parts.',
    solve: 'A function or leaf for a piece that is small enough.',
    join: 'A function or leaf that puts the results of the parts together.',
    workers: 'The number of workers to which the pieces are dealt.',
    stealing:
      'True (the default): an idle worker takes pieces of another one. False: a piece stays where it was dealt.',
  },
  example: {
    input: {
      text: 'Rain fell on the hills all night.\nIn the morning the river had left its bed.\nAt noon the bridge was closed.',
    },
    root: {
      type: 'fork_join',
      problem: '{{input.text}}',
      should_split: { type: 'task', function: 'muster.is_larger', args: { of: '{{item}}', than: 60 } },
      split: { type: 'task', function: 'muster.chunk', args: { of: '{{item}}', size: 50 } },
      solve: {
        type: 'task',
        function: 'muster.ask',
        args: { prompt: 'Say this in five words.', input: '{{item}}' },
      },
      join: {
        type: 'task',
        function: 'muster.condense',
        args: { prompt: 'Make one headline of these.', items: '{{item}}' },
      },
      workers: 2,
    },
  },
}

const suits: Suits = {
  summary: 'one large problem that is split until its pieces are small, solved and joined',
  rank: 3,
  cues: [
    { weight: 10, speaks: /\b(fork[\s/_-]*join|divide[\s-]and[\s-]conquer)\b/i, because: 'the description names it' },
    {
      weight: 6,
      speaks: /\b(recursive(ly)?|sub-?problems?|(merge|quick)[\s-]?sort|too (large|long|big))\b/i,
      because: 'the problem is split until its pieces are small enough',
    },
    {
      weight: 6,
      speaks:
        /\b(split|divide|break|cut|chop)\b.{1,200}\b(pieces|parts|chunks|sections|chapters|halves|smaller)\b|\b(splitting|dividing)\b/is,
      because: 'one large thing is split and the pieces are joined',
    },
    {
      weight: 5,
      speaks: /\b(research|gather sources|literature)\b/i,
      because: 'sources are gathered, each is analyzed, and the findings are joined',
    },
  ],
  plan: (facts) => {
    const pieces = Math.ceil(itemsOf(facts) / PIECE_SIZE)
    const usual = Math.max(FEWEST_WORKERS, Math.min(pieces, MOST_WORKERS))
    const workers = Math.min(facts.workers ?? usual, MOST_NAMED_WORKERS)
    const definition: ForkJoin = {
      type: 'fork_join',
      problem: '{{input.items}}',
      should_split: callOf('muster.is_larger', { of: '{{item}}', than: PIECE_SIZE }),
      split: callOf('muster.chunk', { of: '{{item}}', size: PIECE_SIZE }),
      solve: callOf('muster.ask', { prompt: promptOf(facts), input: '{{item}}' }),
      join: callOf('muster.condense', {
        prompt: `Join these results into one. It was asked for: ${promptOf(facts)}`,
        items: '{{item}}',
      }),
      workers,
      stealing: true,
    }
    const joining = pieces > 1 ? condensingCalls(pieces) : 0
    return { definition, workers, calls: pieces + joining, rounds: Math.ceil(pieces / workers) + joining }
  },
}

/**
 * A problem that is too large is split, its parts are solved or split again, and their solutions are joined. Each piece
 * is a node of its own, so that the end of a piece concerns only the pieces above it.
 */
export const forkJoin: Pattern<ForkJoin> = {
  type: 'fork_join',
  schema,
  next: ({ node, previous, children, open, render }) => {
    if (open > 0) return 'wait'
    const whole = children.get('whole')
    if (whole) return { end: whole }
    const problem = readProblem(node.problem, children.get('problem'), render)
    if ('source' in problem) return { start: [{ key: 'problem', node: problem.source, previous, isSource: true }] }
    if ('error' in problem) return { end: failed(problem.error) }
    return { start: [{ key: 'whole', node: pieceOf(node, problem.value, 0), previous }] }
  },
  made: { piece },
  parts: (node) => [...problemParts(node.problem), ...works.flatMap((work) => workPart(work, node[work]))],
  // A piece of a problem is worked on like the whole problem.
  partKey: (key) => (/^(whole|\d+)$/.test(key) ? SELF : key),
  turnOf: (key) => TURNS[key] ?? 2,
  // A function's name stands for its result, as with items; any other text is a problem in words.
  check: (node, { isFunction }) =>
    typeof node.problem === 'string' && isFunction(node.problem)
      ? { ...node, problem: { function: node.problem } }
      : node,
  plannedLeaves: () => 1,
  expectedMs: (node, times) => {
    const each = times.work(node.should_split) + times.work(node.solve)
    const solving = times.atOnce(Array<number>(times.assumed).fill(each), node.workers)
    return times.work(node.split) + solving + times.work(node.join, times.assumed)
  },
  pool: ({ workers, stealing }) => ({
    workers: workerNames(workers),
    topology: 'mesh',
    possible: [],
    stealing,
    maySwitch: false,
  }),
  functionFields: ['problem', ...works],
  suits,
  guide,
}

const pieceOf = (of: ForkJoin, problem: unknown, depth: number): Piece => ({ type: 'piece', of, problem, depth })

function problemParts(problem: unknown): Part[] {
  if (problem === undefined) return [{ field: 'problem', wrong: 'is required' }]
  const source = problemSource(problem)
  if (!source) return [{ field: 'problem', given: problem }]
  return [
    { field: 'problem.function', source },
    { field: 'problem.args', given: source.args },
  ]
}

/** The problem is a value, a placeholder, or the result of a function, which is then the first child. */
function readProblem(
  problem: unknown,
  given: NodeOutcome | null | undefined,
  render: (value: unknown) => unknown,
): { value: unknown } | { source: FunctionLeaf } | { error: string } {
  const source = problemSource(problem)
  if (!source) return { value: render(problem) }
  if (!given) return { source }
  return given.status === 'failed' ? { error: given.error } : { value: given.value }
}

/** Only an object with the key `function` is a function: a text is a problem in words. */
function problemSource(problem: unknown): FunctionLeaf | null {
  if (problem === null || typeof problem !== 'object' || !('function' in problem)) return null
  const keys = Object.keys(problem)
  if (typeof problem.function !== 'string' || keys.some((key) => !['type', 'function', 'args'].includes(key)))
    return null
  return callOf(problem.function, 'args' in problem ? problem.args : undefined)
}

function nextOfPiece(state: NodeState<Piece>): Move {
  const { node, children, open } = state
  if (open > 0) return 'wait'
  const failure = [...children.values()].find((child) => child?.status === 'failed')
  if (failure) return { end: failed(failure.error ?? 'A piece failed.') }
  const isLarge = children.get('should_split')
  if (!isLarge) return ask(state, 'should_split', node.problem)
  if (isTrue(isLarge.value) && node.depth >= DEEPEST_FORK) {
    return { end: failed(`The problem was split ${DEEPEST_FORK} times over and is still too large.`) }
  }
  if (!isTrue(isLarge.value)) {
    const solved = children.get('solve')
    return solved ? { end: endOf(solved.value, [solved]) } : ask(state, 'solve', node.problem)
  }
  const parts = children.get('split')
  if (!parts) return ask(state, 'split', node.problem)
  if (!Array.isArray(parts.value) || parts.value.length === 0) {
    return { end: failed(`split gave no list of parts but ${kindOf(parts.value)}.`) }
  }
  return join(state, parts.value)
}

function join(state: NodeState<Piece>, problems: readonly unknown[]): Move {
  const { node, previous, children } = state
  const joined = children.get('join')
  if (joined) return { end: endOf(joined.value, children.values()) }
  const solved = problems.map((_, place) => children.get(String(place)))
  if (problems.length > 0 && solved[0] === undefined) {
    const { of, depth } = node
    return {
      start: problems.map((problem, place) => ({
        key: String(place),
        node: pieceOf(of, problem, depth + 1),
        previous,
      })),
    }
  }
  const values = solved.map((part: NodeOutcome | null | undefined) => part?.value)
  return ask(state, 'join', values)
}

function ask({ node, previous }: NodeState<Piece>, key: (typeof works)[number], item: unknown): Move {
  return { start: [{ key, node: leafOf(node.of[key]), previous, item }] }
}
