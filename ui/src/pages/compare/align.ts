// Lays the steps of two runs side by side, so that steps which do the same stand in one row.
import type { Run } from '../../../../src/kernel/run.ts'
import type { ModelStep, Step, ToolStep } from '../../api/shapes.ts'

/** A call of the model and the tool calls that followed from it. */
export interface Turn {
  step: number
  model: ModelStep
  tools: ToolStep[]
  /** True if a fork or a resumed run took the step over from the run that it came from. */
  isInherited: boolean
}

export interface Row<Item> {
  left: Item | null
  right: Item | null
}

export function turnsOf(steps: readonly Step[]): Turn[] {
  const tools = new Map<number, ToolStep[]>()
  for (const step of steps) {
    if (step.kind === 'tool') tools.set(step.step, [...(tools.get(step.step) ?? []), step])
  }
  return steps
    .filter((step) => step.kind === 'model')
    .map((model) => ({ step: model.step, model, tools: tools.get(model.step) ?? [], isInherited: false }))
}

/** The turns of a run, with those that it took over from the other one. */
export function withInherited(own: { run: Run; turns: Turn[] }, other: { run: Run; turns: Turn[] }): Turn[] {
  const { run, turns } = own
  const isResumed = run.resumed_from === other.run.id
  if (!isResumed && run.forked_from !== other.run.id) return turns
  const first = turns[0]?.step ?? Number.POSITIVE_INFINITY
  const last = isResumed ? Number.POSITIVE_INFINITY : (run.trigger.after_step ?? 0)
  const inherited = other.turns.filter(({ step }) => step <= last && step < first)
  return [...inherited.map((turn) => ({ ...turn, isInherited: true })), ...turns]
}

export const alignTurns = (left: readonly Turn[], right: readonly Turn[]): Row<Turn>[] =>
  align(left, right, likenessOfTurns)

export const alignCalls = (left: readonly ToolStep[], right: readonly ToolStep[]): Row<ToolStep>[] =>
  align(left, right, likenessOfCalls)

/** Two of the same name are paired; calls of different tools are not. */
function likenessOfCalls(left: ToolStep, right: ToolStep): number {
  if (left.name !== right.name) return 0
  return isSame(left.args, right.args) ? 3 : 2
}

function likenessOfTurns(left: Turn, right: Turn): number {
  const sameStep = left.step === right.step ? 0.25 : 0
  const names = toolNames(left)
  if (names !== toolNames(right)) return 0.5 + sameStep
  const sameText = left.model.text === right.model.text
  if (sameText && isSame(argsOf(left), argsOf(right))) return 4 + sameStep
  return (names === '' ? 1.5 : 2) + (sameText ? 1 : 0) + sameStep
}

const toolNames = ({ model }: Turn): string => model.tool_calls.map(({ name }) => name).join(' ')
const argsOf = ({ model }: Turn): unknown[] => model.tool_calls.map(({ args }) => args)

/** Compares as JSON, whatever the order of an object's keys. */
export const isSame = (left: unknown, right: unknown): boolean => sorted(left) === sorted(right)

const sorted = (value: unknown): string | undefined =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  )

/** Larger tables than this would take seconds; beyond it steps are paired by their position. */
const LARGEST_TABLE = 1_000_000

/**
 * The rows with the most likeness in all. Pairs never cross. A pair needs a likeness above zero; what has no partner
 * stands alone. Equal beginnings and ends, which forks and repeated runs have, are paired without the table.
 */
function align<Item>(
  left: readonly Item[],
  right: readonly Item[],
  likeness: (left: Item, right: Item) => number,
): Row<Item>[] {
  let begin = 0
  while (begin < left.length && begin < right.length && isEqual(left[begin], right[begin])) begin++
  let end = 0
  while (
    end < Math.min(left.length, right.length) - begin &&
    isEqual(left[left.length - 1 - end], right[right.length - 1 - end])
  )
    end++
  const middle = {
    left: left.slice(begin, left.length - end),
    right: right.slice(begin, right.length - end),
  }
  const pairs = (items: number, from: (side: readonly Item[]) => number): Row<Item>[] =>
    Array.from({ length: items }, (_, place) => ({
      left: left[from(left) + place] ?? null,
      right: right[from(right) + place] ?? null,
    }))
  const isLarge = middle.left.length * middle.right.length > LARGEST_TABLE
  return [
    ...pairs(begin, () => 0),
    ...(isLarge ? byPosition(middle.left, middle.right) : byTable(middle.left, middle.right, likeness)),
    ...pairs(end, ({ length }) => length - end),
  ]

  function isEqual(one: Item | undefined, other: Item | undefined): boolean {
    return one !== undefined && other !== undefined && likeness(one, other) >= EQUAL
  }
}

/** The likeness of two that do exactly the same at the same step, or of two equal calls. */
const EQUAL = 4.25

const byPosition = <Item>(left: readonly Item[], right: readonly Item[]): Row<Item>[] =>
  Array.from({ length: Math.max(left.length, right.length) }, (_, place) => ({
    left: left[place] ?? null,
    right: right[place] ?? null,
  }))

function byTable<Item>(
  left: readonly Item[],
  right: readonly Item[],
  likeness: (left: Item, right: Item) => number,
): Row<Item>[] {
  const width = right.length + 1
  // best[i * width + j]: the most likeness of what follows item i at the left and item j at the right.
  const best = new Float64Array((left.length + 1) * width)
  const at = (i: number, j: number): number => best[i * width + j] ?? 0
  const pair = (i: number, j: number): number => {
    const one = left[i]
    const other = right[j]
    const like = one === undefined || other === undefined ? 0 : likeness(one, other)
    return like > 0 ? like + at(i + 1, j + 1) : Number.NEGATIVE_INFINITY
  }
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      best[i * width + j] = Math.max(pair(i, j), at(i + 1, j), at(i, j + 1))
    }
  }
  const rows: Row<Item>[] = []
  for (let i = 0, j = 0; i < left.length || j < right.length; ) {
    const isBoth = i < left.length && j < right.length
    if (isBoth && pair(i, j) === at(i, j)) rows.push({ left: left[i++] ?? null, right: right[j++] ?? null })
    else if (j >= right.length || (i < left.length && at(i + 1, j) >= at(i, j + 1)))
      rows.push({ left: left[i++] ?? null, right: null })
    else rows.push({ left: null, right: right[j++] ?? null })
  }
  return rows
}
