import { z } from 'zod'
import { decisionOf, planProblem, readDecision, type Subtask } from '../../../kernel/decision.ts'
import { type AgentLeaf, agentField, sharedFields } from '../../../kernel/flow.ts'
import { completed, failed, type Move, type NodeState, partial } from '../move.ts'
import type { Pattern, PatternGuide } from '../pattern.ts'
import { ASSUMED, MOST_NAMED_WORKERS, promptOf, type Suits } from '../workload.ts'
import { type CarriedOut, carryOut, inText } from './carry-out.ts'
import { attemptsOf } from './run-keys.ts'

const schema = z.strictObject({
  type: z.literal('hierarchical'),
  ...sharedFields,
  queen: agentField,
  workers: z.array(agentField).min(1).max(1_000),
  goal: z.string().min(1).max(200_000),
})
export type Hierarchical = z.infer<typeof schema>
export type HierarchicalInput = z.input<typeof schema>

const ROUNDS = 2
const TURNS: Readonly<Record<string, number | undefined>> = { plan: 0, review: 2 }

/** The agents that the flow names if the project has none yet. */
export const placeholderAgents = { queen: 'queen', worker: 'worker' } as const

const guide: PatternGuide = {
  text: 'Gives a goal to a queen, an agent that plans. She breaks the goal down into subtasks with dependencies, workers carry the subtasks out, and she judges the results and writes the report, which is the output. If she does not accept the results, there is one more round; after that the flow run ends as `partial`. The prompts for planning and judging come with Muster.',
  fields: {
    queen: 'The name or id of the agent that plans and judges.',
    workers: 'The names or ids of the agents that do the subtasks. The same agent may stand in the list several times.',
    goal: 'The goal, as a text with templates.',
  },
  example: {
    input: { product: 'green tea' },
    root: {
      type: 'hierarchical',
      queen: 'Director',
      workers: ['Writer', 'Checker'],
      goal: '1. Draft a text about {{input.product}}.\n2. Proofread the text.',
    },
  },
}

const suits: Suits = {
  summary: 'a goal whose subtasks are not known yet: a queen plans, hands out the work and judges it',
  rank: 4,
  cues: [
    { weight: 10, speaks: /\b(queens?|hierarch\w+)\b/i, because: 'the description names a queen or a hierarchy' },
    {
      weight: 6,
      speaks:
        /\b(delegat\w*|coordinat\w*|supervis\w*|overs(ee|ight)\w*|orchestrat\w*|decompos\w*|team of|led by|lead agent|allocat\w*)\b/i,
      because: 'someone is to plan, hand out the work and judge it',
    },
    {
      weight: 5,
      speaks:
        /\b(security (issues|audit|review)|codebase|complex|open-ended|strategy|make a plan|plan (and|the)|feature)\b/i,
      because: 'the subtasks are only known after looking at the goal',
    },
  ],
  plan: (facts, agents) => {
    const count = Math.min(facts.workers ?? ASSUMED.subtasks, MOST_NAMED_WORKERS)
    const [queen = placeholderAgents.queen, ...others] = agents
    const team = others.length > 0 ? others : [agents[0] ?? placeholderAgents.worker]
    // The same agent may work several times at once.
    const workers = Array.from({ length: count }, (_, place) => team[place % team.length] ?? queen)
    const definition: Hierarchical = { type: 'hierarchical', queen, workers, goal: promptOf(facts) }
    const { queen: ours, worker } = placeholderAgents
    const note = `It needs agents: create ${ours} and ${worker}, or put in the names of yours.`
    return { definition, workers: count, calls: count + 2, rounds: 3, ...(agents.length === 0 ? { note } : {}) }
  },
  counts: ({ workers }) => (workers === null ? `Assumes ${ASSUMED.subtasks} subtasks.` : `Counts ${workers} workers.`),
}

/**
 * A queen plans, workers carry the plan out, and the queen puts their results together and judges them. If she does not
 * accept them, she plans once more.
 */
export const hierarchical: Pattern<Hierarchical> = {
  type: 'hierarchical',
  schema,
  next,
  parts: ({ queen, workers, goal }) => [
    { field: 'queen', agent: queen },
    ...workers.map((agent, index) => ({ field: 'workers', index, agent })),
    { field: 'goal', given: goal },
  ],
  turnOf: (key) => {
    const [word = '', round] = key.split(' ')
    return 3 * Number(round) + (TURNS[word] ?? 1)
  },
  plannedLeaves: ({ workers }) => workers.length,
  // The queen plans, the workers work at once, and the queen judges.
  expectedMs: (_, times) => 3 * times.modelCallMs,
  agentFields: ['queen', 'workers'],
  suits,
  guide,
}

function next(state: NodeState<Hierarchical>): Move {
  for (let round = 1; ; round++) {
    const plan = decided(state, `plan ${round}`, 'queen_plan', () => planBrief(state, round), planProblemOf)
    if ('move' in plan) return plan.move
    const work = carryOut(state, round, plan.decision.subtasks)
    if ('move' in work) return work.move
    const review = decided(
      state,
      `review ${round}`,
      'queen_review',
      () => reviewBrief(state, work),
      () => null,
    )
    if ('move' in review) return review.move
    const { acceptable, problems, report } = review.decision
    const isWhole = work.failures.length === 0
    if (acceptable) return { end: isWhole ? completed(report) : partial(report) }
    if (round < ROUNDS) continue
    const told = problems.join('') === '' ? ['The queen did not accept the result.'] : problems
    return { end: { status: 'partial', value: report, error: null, problems: told } }
  }
}

type Told = { move: Move }

/** The decision of the queen, who is asked at most twice; or the next move until she has decided. */
function decided<Name extends 'queen_plan' | 'queen_review'>(
  state: NodeState<Hierarchical>,
  key: string,
  name: Name,
  brief: () => string,
  problemOf: (decision: Extract<ReturnType<typeof readDecision<Name>>, { ok: true }>['decision']) => string | null,
): Told | { decision: Extract<ReturnType<typeof readDecision<Name>>, { ok: true }>['decision'] } {
  const { node, previous, children } = state
  let problem = ''
  for (const attempt of attemptsOf(key)) {
    const answer = children.get(attempt)
    if (answer === null) return { move: 'wait' }
    if (answer === undefined) {
      const input =
        problem === '' ? brief() : `${brief()}\n\nYour last answer did not fit: ${problem} Answer once more.`
      const leaf: AgentLeaf = { type: 'task', agent: node.queen, input: '{{item}}' }
      return {
        move: { start: [{ key: attempt, node: leaf, previous, item: input, answer: decisionOf(name) }], toCome: 0 },
      }
    }
    if (answer.status === 'failed') return { move: { end: failed(answer.error) } }
    const read = readDecision(name, answer.value)
    problem = read.ok ? (problemOf(read.decision) ?? '') : read.problem
    if (read.ok && problem === '') return { decision: read.decision }
  }
  return { move: { end: failed(`The queen's answer to ${name} did not fit: ${problem}`) } }
}

const planProblemOf = ({ subtasks }: { subtasks: Subtask[] }): string | null => planProblem(subtasks)

function planBrief({ node, render, children }: NodeState<Hierarchical>, round: number): string {
  const [first, second] = attemptsOf(`review ${round - 1}`)
  const earlier =
    round === 1 ? null : readDecision('queen_review', children.get(second)?.value ?? children.get(first)?.value)
  const problems = earlier?.ok ? `\n\nThe last result was not acceptable:\n${listed(earlier.decision.problems)}` : ''
  return `You lead a team. Break this goal down into subtasks with their dependencies, and say how many workers each needs.\n\nThe goal: ${inText(render(node.goal))}\n\nThe workers: ${node.workers.join(', ')}${problems}`
}

function reviewBrief({ node, render }: NodeState<Hierarchical>, { done, failures }: CarriedOut): string {
  const results = done.map(({ subtask, value }) => `${subtask.title}:\n${inText(value)}`).join('\n\n')
  const failed = failures.map(({ subtask, error }) => `${subtask.title}: ${error}`)
  const problems = failed.length > 0 ? `\n\nThese failed:\n${listed(failed)}` : ''
  return `Your team has worked on this goal: ${inText(render(node.goal))}\n\nPut what they found together into one report, and say whether it is acceptable.\n\n${results}${problems}`
}

const listed = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join('\n')
