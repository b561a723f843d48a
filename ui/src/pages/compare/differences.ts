// Says in words in what two runs, steps or calls differ.
import type { Run } from '../../../../src/kernel/run.ts'
import type { ToolStep } from '../../api/shapes.ts'
import { cost, duration, oneLine, tokens } from '../../parts/figures.ts'
import { alignCalls, isSame, type Row, type Turn } from './align.ts'

export interface Figure {
  name: string
  left: string
  right: string
  /** How the right one differs from the left one; null if it does not. */
  difference: string | null
}

export function figuresOf(left: Run, right: Run): Figure[] {
  const differs = (one: unknown, other: unknown): string | null => (isSame(one, other) ? null : 'differs')
  const statusOf = ({ status, pause_reason: reason }: Run): string =>
    reason === null ? status : `${status}: ${reason.replaceAll('_', ' ')}`
  const text = (name: string, of: (run: Run) => unknown): Figure => ({
    name,
    left: oneLine(of(left) ?? '–', 400),
    right: oneLine(of(right) ?? '–', 400),
    difference: differs(of(left), of(right)),
  })
  const number = (name: string, of: (run: Run) => number | null, write: (value: number) => string): Figure => ({
    name,
    left: written(of(left), write),
    right: written(of(right), write),
    difference: moreOrLess(of(left), of(right), write),
  })
  return [
    { ...text('Status', statusOf), left: statusOf(left), right: statusOf(right) },
    text('Input', ({ input }) => input),
    number('Steps', ({ step_count: count }) => count, String),
    number('Tokens', ({ usage }) => usage.total_tokens, tokens),
    number('Cost', ({ usage }) => usage.cost_usd, cost),
    number('Took', (run) => run.duration, duration),
    ...(isSame(left.model, right.model) ? [] : [text('Model', modelOf)]),
    text('Answer', ({ summary, error_message: problem }) => summary ?? problem),
  ]
}

const modelOf = ({ model }: Run): string => (model === null ? '–' : `${model.name} of ${model.provider}`)

const written = (value: number | null, write: (value: number) => string): string =>
  value === null ? '–' : write(value)

/** +120 (+15 %), or null if both are the same. */
export function moreOrLess(left: number | null, right: number | null, write: (value: number) => string): string | null {
  if (left === null || right === null) return 'not known'
  const by = right - left
  if (by === 0) return null
  const sign = by > 0 ? '+' : '−'
  const share = left === 0 ? '' : ` (${sign}${Math.round((100 * Math.abs(by)) / left)} %)`
  return `${sign}${write(Math.abs(by))}${share}`
}

/** The parts in which the turns of a row differ; null if one of them is missing. */
export function differencesOf({ left, right }: Row<Turn>): string[] | null {
  if (!left || !right) return null
  const calls = alignCalls(left.tools, right.tools)
  const pairs = calls.filter(isPair)
  const isIn = (differs: (pair: Pair) => boolean): boolean => pairs.some(differs)
  const found: [string, boolean][] = [
    ['text', left.model.text !== right.model.text],
    ['tool calls', pairs.length < calls.length || !isSame(namesOf(left), namesOf(right))],
    ['arguments', isIn((pair) => !isSame(pair.left.args, pair.right.args))],
    ['results', isIn((pair) => !isSame(pair.left.result, pair.right.result))],
    ['outcome', isIn((pair) => outcomeOf(pair.left) !== outcomeOf(pair.right))],
  ]
  return found.filter(([, differs]) => differs).map(([name]) => name)
}

interface Pair {
  left: ToolStep
  right: ToolStep
}

const isPair = (row: Row<ToolStep>): row is Pair => row.left !== null && row.right !== null

const namesOf = ({ model }: Turn): string[] => model.tool_calls.map(({ name }) => name)

/** How a call ended, in a word. */
export const outcomeOf = ({ blocked, is_error: isError, outcome }: ToolStep): string => {
  if (blocked) return `refused: ${blocked.replaceAll('_', ' ')}`
  if (outcome) return 'outcome unknown'
  return isError ? 'error' : 'done'
}
