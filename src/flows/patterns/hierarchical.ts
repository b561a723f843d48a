import { decisionOf, planProblem, readDecision, type Subtask } from '../../kernel/decision.ts'
import type { AgentLeaf, Hierarchical } from '../../kernel/flow.ts'
import { completed, failed, type Move, type Pattern, partial, type Standing } from '../pattern.ts'
import { asText, carryOut, type Work } from './carry-out.ts'

const ROUNDS = 2

/**
 * A queen plans, workers carry the plan out in the order of its dependencies, and the queen puts their results together
 * and judges them. If she does not accept them, she plans once more.
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

/** The decision of the queen, who is asked at most twice; or the next move until she has decided. */
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
