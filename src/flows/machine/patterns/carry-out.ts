// A queen's plan in the hands of her workers: subtasks in the order of their dependencies, each done by as many workers
// as planned. A failed worker is replaced once. The queen is asked about a subtask that takes far too long.

import { decisionOf, planProblem, readDecision, type Subtask } from '../../../kernel/decision.ts'
import { medianOf } from '../median.ts'
import type { Child, Move, NodeOutcome, NodeState, StartMove } from '../move.ts'
import { type Balancer, createBalancer, type Team } from './balance.ts'
import { adjustKey, attemptsOf, isRunOfWorker, partKey, runKey } from './run-keys.ts'

export interface CarriedOut {
  done: { subtask: Subtask; value: unknown }[]
  failures: { subtask: Subtask; error: string; runs: FailedRuns }[]
}

/** The runs of workers behind a subtask that failed. */
interface FailedRuns {
  keys: readonly string[]
  /** The calls with an effect that the failed ones have made, one a line. */
  made: readonly string[]
}

/** A subtask is still to be done, or done with a value, or failed for good. */
type State = 'open' | { value: unknown } | { error: string }

/** The results of other subtasks that a subtask is given, and the runs that gave them. */
interface Given {
  context: () => string
  after: () => readonly string[]
}

const briefOf = ({ title, description }: Subtask): string => `${title}\n\n${description}`

/** A run is slow when it takes this many times the expected time. */
const SLOW = 10
const FEWEST_PEERS = 2

/** One round of the plan, whose subtasks are read one by one. */
interface Round {
  team: NodeState<Team>
  /** The rounds count from 1. */
  number: number
  /** The calls that failed work of earlier rounds has made, one a line. */
  stands: readonly string[]
  move: { start: Child[]; drop: string[]; watch: NonNullable<StartMove['watch']>[number][]; toCome: number }
  balancer: Balancer
  states: Map<string, State>
  titles: ReadonlyMap<string, string>
  /** The runs behind the result of each subtask. */
  sources: Map<string, string[]>
  usual: { isKnown: boolean; ms: number } | null
}

export function carryOut(
  team: NodeState<Team>,
  number: number,
  subtasks: readonly Subtask[],
  stands: readonly string[],
): { move: Move } | CarriedOut {
  // The queen judges the results in the end.
  const move: Round['move'] = { start: [], drop: [], watch: [], toCome: 1 }
  const round: Round = {
    team,
    number,
    stands,
    move,
    balancer: createBalancer(team),
    states: new Map(),
    titles: new Map(subtasks.map(({ id, title }) => [id, title])),
    sources: new Map(),
    usual: null,
  }
  const work: CarriedOut = { done: [], failures: [] }
  for (const subtask of inOrder(subtasks)) {
    const state = stateOf(round, subtask)
    round.states.set(subtask.id, state)
    if (state === 'open') continue
    if ('error' in state) work.failures.push({ subtask, error: state.error, runs: runsBehind(round, subtask) })
    else work.done.push({ subtask, value: state.value })
  }
  if (move.start.length > 0 || move.drop.length > 0) return { move }
  if (work.done.length + work.failures.length === subtasks.length) return work
  return { move }
}

function stateOf(round: Round, subtask: Subtask): State {
  const needs = subtask.depends_on.map((id) => ({ id, state: round.states.get(id) ?? 'open' }))
  if (needs.some(({ state }) => state === 'open')) {
    round.move.toCome += subtask.workers
    return 'open'
  }
  if (needs.some(({ state }) => state !== 'open' && 'error' in state))
    return { error: 'A subtask that this one depends on failed.' }
  const titleOf = (id: string): string => round.titles.get(id) ?? id
  // The context is written only for runs that are started: this function is called for all runs, again and again.
  const context = (): string => needs.map(({ id, state }) => `\n\n${titleOf(id)}:\n${inText(valueIn(state))}`).join('')
  const after = (): string[] => subtask.depends_on.flatMap((id) => round.sources.get(id) ?? [])
  const parts = splitOf(round, subtask)
  const isSplit = parts?.some((_, place) => round.team.children.has(partKey(round.number, subtask, place)))
  const given = { context, after }
  return parts && isSplit ? partsOf(round, subtask, parts, given) : runsOf(round, subtask, given)
}

/** All runs with the same brief. */
function runsOf(round: Round, subtask: Subtask, given: Given): State {
  const adjusted = adjustmentOf(round, subtask)
  const planned = Array.from({ length: subtask.workers }, (_, place) => runKey(round.number, subtask, place))
  const open = planned.flatMap(attemptsOf).filter((key) => round.team.children.get(key) === null)
  const parts = adjusted?.action === 'split' && open.length > 0 ? splitOf(round, subtask) : null
  if (parts) {
    round.move.drop.push(...open)
    return partsOf(round, subtask, parts, given)
  }
  // A subtask that is done before the queen has answered needs no more workers.
  const isJoined = open.length > 0 || round.team.children.has(runKey(round.number, subtask, subtask.workers))
  const joining = adjusted?.action === 'more_workers' && isJoined ? (adjusted.workers ?? 1) : 0
  const workers = subtask.workers + joining
  const results = Array.from({ length: workers }, (_, place) => {
    const share = workers > 1 ? `\n\nYou are worker ${place + 1} of ${workers} with this brief.` : ''
    return resultOf(round, subtask, runKey(round.number, subtask, place), () => ({
      item: `${briefOf(subtask)}${share}${given.context()}${standing(round)}`,
      after: given.after(),
    }))
  })
  if (results.some((result) => result === null)) {
    if (adjusted === null) oversee(round, subtask, open, planned)
    return 'open'
  }
  // The queen has not answered yet.
  return adjusted === undefined ? 'open' : joinedResults(results, workers > 1)
}

/** The parts that replace a split subtask, in the order of their own dependencies. */
function partsOf(round: Round, subtask: Subtask, parts: readonly Subtask[], { context, after }: Given): State {
  const known = new Map<string, State>()
  const replaces = Array.from({ length: subtask.workers }, (_, place) => runKey(round.number, subtask, place))
  for (const part of inOrder(parts)) {
    const needs = part.depends_on.map((id) => known.get(id) ?? 'open')
    const key = partKey(round.number, subtask, parts.indexOf(part))
    if (needs.includes('open')) known.set(part.id, 'open')
    else if (needs.some((need) => need !== 'open' && 'error' in need)) {
      known.set(part.id, { error: 'A subtask that this one depends on failed.' })
    } else {
      const given = (): string => part.depends_on.map((id) => `\n\n${id}:\n${inText(valueIn(known.get(id)))}`).join('')
      const result = resultOf(round, subtask, key, () => ({
        item: `${briefOf(part)}${given()}${context()}${standing(round)}`,
        after: after(),
        replaces,
      }))
      known.set(part.id, result === null ? 'open' : stateFrom(result))
    }
  }
  const states = parts.map((part) => known.get(part.id) ?? 'open')
  if (states.includes('open')) return 'open'
  const failure = states.find((state) => state !== 'open' && 'error' in state)
  return failure ?? { value: states.map(valueIn) }
}

/** The outcome of a run. A run that fails is given to another worker, once. Null while such a run is under way. */
function resultOf(
  round: Round,
  subtask: Subtask,
  key: string,
  write: () => Pick<Child, 'item' | 'after' | 'replaces'>,
): NodeOutcome | null {
  for (const attempt of attemptsOf(key)) {
    const known = round.team.children.get(attempt)
    if (known === undefined) {
      const agent = agentFor(round, key, attempt)
      const node = { type: 'task', agent, input: '{{item}}' } as const
      round.move.start.push({ key: attempt, node, title: subtask.title, previous: round.team.previous, ...write() })
      return null
    }
    if (known?.status === 'failed' && attempt === key) continue
    if (known?.status === 'failed' && known.made !== undefined) {
      return { ...known, error: `${known.error}\nThese calls have been made and stand:\n${known.made}` }
    }
    if (known) round.sources.set(subtask.id, [...(round.sources.get(subtask.id) ?? []), attempt])
    return known
  }
  return null
}

/** A failed subtask has failed as a whole, so the runs that were done count as well. */
function runsBehind(round: Round, subtask: Subtask): FailedRuns {
  const { number, team } = round
  const keys: string[] = []
  for (let place = 0; team.children.has(runKey(number, subtask, place)); place++)
    keys.push(runKey(number, subtask, place))
  const parts = (splitOf(round, subtask) ?? []).map((_, place) => partKey(number, subtask, place))
  keys.push(...parts.filter((key) => team.children.has(key)))
  const made = keys.flatMap((key) => {
    const [first, second] = attemptsOf(key)
    // A worker that continues its own work has the calls of its first run as well.
    return madeIn(team.children.get(second)) ?? madeIn(team.children.get(first)) ?? []
  })
  return { keys, made }
}

const madeIn = (outcome: NodeOutcome | null | undefined): string | undefined =>
  outcome?.status === 'failed' ? outcome.made : undefined

/** Tells a worker the calls of work that failed before. */
const standing = ({ stands }: Round): string =>
  stands.length === 0
    ? ''
    : `\n\nOther work on this goal has failed. These calls have been made and stand:\n${stands.join('\n')}\nDo not make a call again whose effect is there already.`

/** A worker that failed after calls with an effect continues its own work; any other failure goes to another worker. */
function agentFor({ balancer, team }: Round, key: string, attempt: string): string {
  const first = attempt === key ? null : team.children.get(key)
  const agent = balancer.agentOf(key)
  if (first?.status === 'failed' && first.made !== undefined && agent !== null) return agent
  return balancer.choose(attempt === key ? null : agent)
}

/** Watches the runs under way, and asks the queen about a subtask as soon as one of its runs is slow. */
function oversee(round: Round, subtask: Subtask, open: readonly string[], planned: readonly string[]): void {
  const limit = slowAfter(round, subtask)
  if (!open.some((key) => round.team.slow.has(key))) {
    if (limit === null) return
    const ours = new Set(planned.flatMap(attemptsOf))
    const started = round.move.start.map((child) => child.key).filter((key) => ours.has(key))
    round.move.watch.push(...[...open, ...started].map((key) => ({ key, ms: limit })))
    return
  }
  const item = `A subtask of your plan takes far longer than the others${limit === null ? '' : `: more than ${limit} ms`}. Say whether to wait, to split it into smaller subtasks that replace it, or to give it more workers.\n\n${briefOf(subtask)}`
  const node = { type: 'task', agent: round.team.node.queen, input: '{{item}}' } as const
  round.move.start.push({
    key: adjustKey(round.number, subtask),
    node,
    previous: round.team.previous,
    item,
    answer: decisionOf('queen_adjust'),
  })
}

/** The limit comes from the runs that are done; if too few are done, from the plan. */
function slowAfter(round: Round, subtask: Subtask): number | null {
  round.usual ??= usualMs(round.team)
  if (round.usual.isKnown) return Math.max(1, SLOW * round.usual.ms)
  return subtask.expected === undefined ? null : SLOW * subtask.expected
}

/** Null: the queen was not asked. Undefined: she has not answered. An answer that does not fit changes nothing. */
function adjustmentOf(round: Round, subtask: Subtask) {
  const answer = round.team.children.get(adjustKey(round.number, subtask))
  if (answer === undefined) return null
  if (answer === null) return undefined
  const read = readDecision('queen_adjust', answer.value)
  return read.ok ? read.decision : ({ action: 'wait' } as const)
}

function splitOf(round: Round, subtask: Subtask): Subtask[] | null {
  const adjusted = adjustmentOf(round, subtask)
  const parts = adjusted && 'subtasks' in adjusted ? (adjusted.subtasks ?? []) : []
  return parts.length > 0 && planProblem(parts) === null ? parts : null
}

function joinedResults(results: readonly (NodeOutcome | null)[], isList: boolean): State {
  const errors = new Set(results.flatMap((result) => (result?.status === 'failed' ? [result.error] : [])))
  if (errors.size > 0) return { error: [...errors].join('\n') }
  const values = results.map((result) => result?.value)
  return { value: isList ? values : values[0] }
}

const stateFrom = (outcome: NodeOutcome): State =>
  outcome.status === 'failed' ? { error: outcome.error } : { value: outcome.value }

const valueIn = (state: State | undefined): unknown =>
  state !== undefined && state !== 'open' && 'value' in state ? state.value : null

export const inText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** The order of each plan. It is kept, because it never changes and is asked for after every outcome. */
const orders = new WeakMap<readonly Subtask[], readonly Subtask[]>()

/** Subtasks that others depend on come first. A plan has no cycles. */
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

/** The usual duration of a run: the median of the runs that are done, if there are enough. */
function usualMs({ children }: NodeState<Team>): { isKnown: boolean; ms: number } {
  const took: number[] = []
  for (const [key, outcome] of children) {
    if (outcome?.status !== 'completed' || outcome.tookMs === undefined) continue
    if (isRunOfWorker(key)) took.push(outcome.tookMs)
  }
  return { isKnown: took.length >= FEWEST_PEERS, ms: medianOf(took) }
}
