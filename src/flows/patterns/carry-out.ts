// A queen's plan in the hands of her workers: subtasks in the order of their dependencies, each done by as many workers
// as planned. A worker that fails is replaced once; the queen is asked about a subtask that takes far too long.
import { decisionOf, planProblem, readDecision, type Subtask } from '../../kernel/decision.ts'
import type { Hierarchical } from '../../kernel/flow.ts'
import type { Child, Move, Outcome, Standing, Start } from '../pattern.ts'
import { createBalancer } from './balance.ts'

export interface Work {
  done: { subtask: Subtask; value: unknown }[]
  failures: { subtask: Subtask; error: string }[]
}

/** Still to be done, or done: with a value, or failed for good. */
type State = 'open' | { value: unknown } | { error: string }

/** The results of other subtasks that a subtask is given, and the runs that gave them. */
interface Given {
  context: () => string
  after: () => readonly string[]
}

const briefOf = ({ title, description }: Subtask): string => `${title}\n\n${description}`

/** A run is slow when it takes so many times the expected time. */
const SLOW = 10
const FEWEST_PEERS = 2

export function carryOut(
  standing: Standing<Hierarchical>,
  round: number,
  subtasks: readonly Subtask[],
): { move: Move } | Work {
  const { children } = standing
  const move = { start: [] as Child[], drop: [] as string[], watch: [] as NonNullable<Start['watch']>[number][] }
  const balancer = createBalancer(standing)
  const work: Work = { done: [], failures: [] }
  const states = new Map<string, State>()
  const titles = new Map(subtasks.map(({ id, title }) => [id, title]))
  /** The runs behind the result of each subtask. */
  const sources = new Map<string, string[]>()
  let usual: { isKnown: boolean; ms: number } | null = null

  for (const subtask of inOrder(subtasks)) {
    const state = stateOf(subtask)
    states.set(subtask.id, state)
    if (state === 'open') continue
    if ('error' in state) work.failures.push({ subtask, error: state.error })
    else work.done.push({ subtask, value: state.value })
  }
  if (move.start.length > 0 || move.drop.length > 0) return { move }
  if (work.done.length + work.failures.length === subtasks.length) return work
  return { move: move.watch.length > 0 ? move : 'wait' }

  function stateOf(subtask: Subtask): State {
    const needs = subtask.depends_on.map((id) => ({ id, state: states.get(id) ?? 'open' }))
    if (needs.some(({ state }) => state === 'open')) return 'open'
    if (needs.some(({ state }) => state !== 'open' && 'error' in state))
      return { error: 'A subtask that this one depends on failed.' }
    const titleOf = (id: string): string => titles.get(id) ?? id
    // The context is written only for runs that are started: this function is called for all, again and again.
    const context = (): string =>
      needs.map(({ id, state }) => `\n\n${titleOf(id)}:\n${asText(valueIn(state))}`).join('')
    const after = (): string[] => subtask.depends_on.flatMap((id) => sources.get(id) ?? [])
    const parts = splitOf(subtask)
    const isSplit = parts?.some((_, place) => children.has(partKey(subtask, place)))
    const given = { context, after }
    return parts && isSplit ? partsOf(subtask, parts, given) : runsOf(subtask, given)
  }

  /** All runs with the same brief. */
  function runsOf(subtask: Subtask, given: Given): State {
    const adjusted = adjustmentOf(subtask)
    const planned = Array.from({ length: subtask.workers }, (_, place) => runKey(subtask.id, place))
    const open = planned.flatMap((key) => [key, `${key} again`]).filter((key) => children.get(key) === null)
    const parts = adjusted?.action === 'split' && open.length > 0 ? splitOf(subtask) : null
    if (parts) {
      move.drop.push(...open)
      return partsOf(subtask, parts, given)
    }
    // A subtask that is done before she has answered needs no more workers.
    const isJoined = open.length > 0 || children.has(runKey(subtask.id, subtask.workers))
    const joining = adjusted?.action === 'more_workers' && isJoined ? (adjusted.workers ?? 1) : 0
    const workers = subtask.workers + joining
    const results = Array.from({ length: workers }, (_, place) => {
      const share = workers > 1 ? `\n\nYou are worker ${place + 1} of ${workers} with this brief.` : ''
      return resultOf(subtask, runKey(subtask.id, place), () => ({
        item: `${briefOf(subtask)}${share}${given.context()}`,
        after: given.after(),
      }))
    })
    if (results.some((result) => result === null)) {
      if (adjusted === null) oversee(subtask, open, planned)
      return 'open'
    }
    // She has not answered yet.
    return adjusted === undefined ? 'open' : together(results, workers > 1)
  }

  /** The parts that replace a split subtask, in the order of their own dependencies. */
  function partsOf(subtask: Subtask, parts: readonly Subtask[], { context, after }: Given): State {
    const known = new Map<string, State>()
    for (const part of inOrder(parts)) {
      const needs = part.depends_on.map((id) => known.get(id) ?? 'open')
      const key = partKey(subtask, parts.indexOf(part))
      if (needs.includes('open')) known.set(part.id, 'open')
      else if (needs.some((need) => need !== 'open' && 'error' in need)) {
        known.set(part.id, { error: 'A subtask that this one depends on failed.' })
      } else {
        const given = (): string =>
          part.depends_on.map((id) => `\n\n${id}:\n${asText(valueIn(known.get(id)))}`).join('')
        const result = resultOf(subtask, key, () => ({
          item: `${briefOf(part)}${given()}${context()}`,
          after: after(),
        }))
        known.set(part.id, result === null ? 'open' : stateFrom(result))
      }
    }
    const states = parts.map((part) => known.get(part.id) ?? 'open')
    if (states.includes('open')) return 'open'
    const failure = states.find((state) => state !== 'open' && 'error' in state)
    return failure ?? { value: states.map(valueIn) }
  }

  /** The outcome of a run; a run that fails is given to another worker, once. Null while one is under way. */
  function resultOf(
    subtask: Subtask,
    key: string,
    write: () => { item: string; after: readonly string[] },
  ): Outcome | null {
    for (const attempt of [key, `${key} again`]) {
      const known = children.get(attempt)
      if (known === undefined) {
        const agent = balancer.choose(attempt === key ? null : balancer.agentOf(key))
        const node = { type: 'task', agent, input: '{{item}}' } as const
        move.start.push({ key: attempt, node, previous: standing.previous, ...write() })
        return null
      }
      if (known?.status === 'failed' && attempt === key) continue
      if (known) sources.set(subtask.id, [...(sources.get(subtask.id) ?? []), attempt])
      return known
    }
    return null
  }

  /** Watches the runs under way, and asks the queen about a subtask as soon as one of its runs is slow. */
  function oversee(subtask: Subtask, open: readonly string[], planned: readonly string[]): void {
    const limit = slowAfter(subtask)
    if (!open.some((key) => standing.slow.has(key))) {
      if (limit === null) return
      const isOurs = (key: string): boolean => planned.includes(key.replace(/ again$/, ''))
      const started = move.start.map((child) => child.key).filter(isOurs)
      move.watch.push(...[...open, ...started].map((key) => ({ key, ms: limit })))
      return
    }
    const item = `A subtask of your plan takes far longer than the others${limit === null ? '' : `: more than ${limit} ms`}. Say whether to wait, to split it into smaller subtasks that replace it, or to give it more workers.\n\n${briefOf(subtask)}`
    const node = { type: 'task', agent: standing.node.queen, input: '{{item}}' } as const
    move.start.push({
      ...{ key: adjustKey(subtask), node, previous: standing.previous, item },
      answer: decisionOf('queen_adjust'),
    })
  }

  /** The limit comes from the runs that are done; where too few are, from the plan. */
  function slowAfter(subtask: Subtask): number | null {
    usual ??= usualMs(standing)
    if (usual.isKnown) return Math.max(1, SLOW * usual.ms)
    return subtask.expected === undefined ? null : SLOW * subtask.expected
  }

  /** Null: the queen was not asked. Undefined: she has not answered. An answer that does not fit changes nothing. */
  function adjustmentOf(subtask: Subtask) {
    const answer = children.get(adjustKey(subtask))
    if (answer === undefined) return null
    if (answer === null) return undefined
    const read = readDecision('queen_adjust', answer.value)
    return read.ok ? read.decision : ({ action: 'wait' } as const)
  }

  function splitOf(subtask: Subtask): Subtask[] | null {
    const adjusted = adjustmentOf(subtask)
    const parts = adjusted && 'subtasks' in adjusted ? (adjusted.subtasks ?? []) : []
    return parts.length > 0 && planProblem(parts) === null ? parts : null
  }

  function runKey(id: string, place: number): string {
    return `do ${round} ${id} ${place}`
  }

  function partKey(subtask: Subtask, place: number): string {
    return `part ${round} ${subtask.id} ${place}`
  }

  function adjustKey(subtask: Subtask): string {
    return `adjust ${round} ${subtask.id}`
  }
}

function together(results: readonly (Outcome | null)[], isList: boolean): State {
  const failure = results.find((result) => result?.status === 'failed')
  if (failure) return stateFrom(failure)
  const values = results.map((result) => result?.value)
  return { value: isList ? values : values[0] }
}

const stateFrom = (outcome: Outcome): State =>
  outcome.status === 'failed' ? { error: outcome.error } : { value: outcome.value }

const valueIn = (state: State | undefined): unknown =>
  state !== undefined && state !== 'open' && 'value' in state ? state.value : null

export const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** The order of each plan: it is asked for after every outcome, and never changes. */
const orders = new WeakMap<readonly Subtask[], readonly Subtask[]>()

/** Subtasks that others depend on come first; a plan has no cycles. */
function inOrder(subtasks: readonly Subtask[]): readonly Subtask[] {
  const known = orders.get(subtasks)
  if (known) return known
  const ordered: Subtask[] = []
  const placed = new Set<string>()
  while (ordered.length < subtasks.length) {
    for (const subtask of subtasks) {
      if (placed.has(subtask.id) || !subtask.depends_on.every((id) => placed.has(id))) continue
      placed.add(subtask.id)
      ordered.push(subtask)
    }
  }
  orders.set(subtasks, ordered)
  return ordered
}

/** The usual duration of a run: the median of the runs that are done, where there are enough. */
function usualMs({ children }: Standing<Hierarchical>): { isKnown: boolean; ms: number } {
  const took: number[] = []
  for (const [key, outcome] of children) {
    if (outcome?.status !== 'completed' || outcome.tookMs === undefined) continue
    if (key.startsWith('do ') || key.startsWith('part ')) took.push(outcome.tookMs)
  }
  return { isKnown: took.length >= FEWEST_PEERS, ms: medianOf(took) }
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? 0
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}
