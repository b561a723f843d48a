import { decisionOf, planProblem, readDecision, type Subtask } from '../../kernel/decision.ts'
import type { AgentLeaf, Hierarchical } from '../../kernel/flow.ts'
import {
  type Child,
  completed,
  failed,
  type Move,
  type Outcome,
  type Pattern,
  partial,
  type Standing,
} from '../pattern.ts'

const ROUNDS = 2

/**
 * A queen plans, workers carry the plan out in the order of its dependencies, and the queen puts what they found together
 * and judges it. What she does not accept is planned once more.
 */
export const hierarchical: Pattern<Hierarchical> = (standing) => {
  for (let round = 1; ; round++) {
    const plan = decided(standing, `plan ${round}`, 'queen_plan', () => planBrief(standing, round), planProblemOf)
    if ('move' in plan) return plan.move
    const work = carryOut(standing, round, plan.decision.subtasks)
    if ('move' in work) return work.move
    const review = decided(
      standing,
      `review ${round}`,
      'queen_review',
      () => reviewBrief(standing, work),
      () => null,
    )
    if ('move' in review) return review.move
    const { acceptable, problems, report } = review.decision
    const isWhole = work.failures.length === 0
    if (acceptable) return { end: isWhole ? completed(report) : partial(report) }
    if (round === ROUNDS) return { end: { status: 'partial', value: report, error: null, problems } }
  }
}

type Told = { move: Move }

/** What the queen decided, asked at most twice; or what to do until she has. */
function decided<Name extends 'queen_plan' | 'queen_review'>(
  standing: Standing<Hierarchical>,
  key: string,
  name: Name,
  brief: () => string,
  problemOf: (decision: Extract<ReturnType<typeof readDecision<Name>>, { ok: true }>['decision']) => string | null,
): Told | { decision: Extract<ReturnType<typeof readDecision<Name>>, { ok: true }>['decision'] } {
  const { node, previous, children } = standing
  let problem = ''
  for (const attempt of [key, `${key} again`]) {
    const answer = children.get(attempt)
    if (answer === null) return { move: 'wait' }
    if (answer === undefined) {
      const input =
        problem === '' ? brief() : `${brief()}\n\nYour last answer did not fit: ${problem} Answer once more.`
      const leaf: AgentLeaf = { type: 'task', agent: node.queen, input: '{{item}}' }
      return { move: { start: [{ key: attempt, node: leaf, previous, item: input, answer: decisionOf(name) }] } }
    }
    if (answer.status === 'failed') return { move: { end: failed(answer.error) } }
    const read = readDecision(name, answer.value)
    problem = read.ok ? (problemOf(read.decision) ?? '') : read.problem
    if (read.ok && problem === '') return { decision: read.decision }
  }
  return { move: { end: failed(`The queen's answer to ${name} did not fit: ${problem}`) } }
}

const planProblemOf = ({ subtasks }: { subtasks: Subtask[] }): string | null => planProblem(subtasks)

interface Done {
  subtask: Subtask
  value: unknown
}

interface Work {
  done: Done[]
  failures: { subtask: Subtask; error: string }[]
}

/** Subtasks whose dependencies are done, each by as many workers as planned; one that fails is given to another, once. */
function carryOut(standing: Standing<Hierarchical>, round: number, subtasks: readonly Subtask[]): Told | Work {
  const { children } = standing
  const work: Work = { done: [], failures: [] }
  const settled = new Map<string, Done | null>()
  const starts: Child[] = []
  let isOpen = false
  for (const subtask of inOrder(subtasks)) {
    const needs = subtask.depends_on.map((id) => settled.get(id))
    // Waits, or can never be done.
    if (needs.includes(undefined)) continue
    if (needs.includes(null)) {
      settled.set(subtask.id, null)
      work.failures.push({ subtask, error: 'What it depends on failed.' })
      continue
    }
    const results = Array.from({ length: subtask.workers }, (_, place) => {
      const key = `do ${round} ${subtask.id} ${place}`
      const first = children.get(key)
      if (first === undefined) starts.push(childFor(standing, subtask, needs as Done[], key, subtasks, place, 0))
      if (first?.status !== 'failed') return first ?? null
      const second = children.get(`${key} again`)
      if (second === undefined)
        starts.push(childFor(standing, subtask, needs as Done[], `${key} again`, subtasks, place, 1))
      return second ?? null
    })
    if (results.includes(null)) {
      isOpen = true
      continue
    }
    settle(
      subtask,
      results.filter((result) => result !== null),
      settled,
      work,
    )
  }
  if (starts.length > 0) return { move: { start: starts } }
  return isOpen ? { move: 'wait' } : work
}

function settle(subtask: Subtask, results: readonly Outcome[], settled: Map<string, Done | null>, work: Work): void {
  const failure = results.find((result) => result.status === 'failed')
  if (failure) {
    settled.set(subtask.id, null)
    work.failures.push({ subtask, error: failure.error ?? 'It failed.' })
    return
  }
  const done = { subtask, value: subtask.workers === 1 ? results[0]?.value : results.map((result) => result.value) }
  settled.set(subtask.id, done)
  work.done.push(done)
}

/** Those that others depend on come first; a plan has no cycles. */
function inOrder(subtasks: readonly Subtask[]): Subtask[] {
  const ordered: Subtask[] = []
  const placed = new Set<string>()
  while (ordered.length < subtasks.length) {
    for (const subtask of subtasks) {
      if (placed.has(subtask.id) || !subtask.depends_on.every((id) => placed.has(id))) continue
      placed.add(subtask.id)
      ordered.push(subtask)
    }
  }
  return ordered
}

/** Workers take turns over the whole plan; a second attempt is the next one's. */
function childFor(
  { node, previous }: Standing<Hierarchical>,
  subtask: Subtask,
  needs: readonly Done[],
  key: string,
  subtasks: readonly Subtask[],
  place: number,
  attempt: number,
): Child {
  const before = subtasks.slice(0, subtasks.indexOf(subtask)).reduce((all, each) => all + each.workers, 0)
  const agent = node.workers[(before + place + attempt) % node.workers.length] ?? ''
  const share = subtask.workers > 1 ? `\n\nYou are worker ${place + 1} of ${subtask.workers} with this brief.` : ''
  const given = needs.map((need) => `\n\n${need.subtask.title}:\n${asText(need.value)}`).join('')
  const item = `${subtask.title}\n\n${subtask.description}${share}${given}`
  return { key, node: { type: 'task', agent, input: '{{item}}' }, previous, item }
}

function planBrief({ node, render, children }: Standing<Hierarchical>, round: number): string {
  const earlier =
    round === 1
      ? null
      : readDecision(
          'queen_review',
          children.get(`review ${round - 1} again`)?.value ?? children.get(`review ${round - 1}`)?.value,
        )
  const problems = earlier?.ok ? `\n\nThe last result was not acceptable:\n${listed(earlier.decision.problems)}` : ''
  return `You lead a team. Break this goal down into subtasks with their dependencies, and say how many workers each needs.\n\nThe goal: ${asText(render(node.goal))}\n\nThe workers: ${node.workers.join(', ')}${problems}`
}

function reviewBrief({ node, render }: Standing<Hierarchical>, { done, failures }: Work): string {
  const results = done.map(({ subtask, value }) => `${subtask.title}:\n${asText(value)}`).join('\n\n')
  const failed = failures.map(({ subtask, error }) => `${subtask.title}: ${error}`)
  const problems = failed.length > 0 ? `\n\nThese failed:\n${listed(failed)}` : ''
  return `Your team has worked on this goal: ${asText(render(node.goal))}\n\nPut what they found together into one report, and say whether it is acceptable.\n\n${results}${problems}`
}

const listed = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join('\n')
const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
