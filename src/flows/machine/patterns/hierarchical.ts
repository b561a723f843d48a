import { z } from 'zod'
import { decisionOf, planProblem, readDecision } from '../../../kernel/decision.ts'
import { type AgentLeaf, agentField, sharedFields } from '../../../kernel/flow.ts'
import { type Child, completed, failed, type Move, type NodeOutcome, type NodeState, partial } from '../move.ts'
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
  let before: Rejected | null = null
  for (let round = 1; ; round++) {
    const plan = planOf(state, round, before)
    if ('move' in plan) return plan.move
    const stands: string[] = before?.work.failures.flatMap(({ runs }) => [...runs.made]) ?? []
    const work = carryOut(state, round, plan.decision.subtasks, stands)
    if ('move' in work) return work.move
    const review = decided(state, {
      key: `review ${round}`,
      name: 'queen_review',
      brief: () => reviewBrief(state, work),
      problemOf: () => null,
    })
    if ('move' in review) return review.move
    const { acceptable, problems, report } = review.decision
    const isWhole = work.failures.length === 0
    if (acceptable) return { end: isWhole ? completed(report) : partial(report) }
    before = { work, report, problems: problems.join('') === '' ? ['The queen did not accept the result.'] : problems }
    if (round === ROUNDS) return { end: unaccepted(before) }
  }
}

/** A round whose result the queen did not accept. */
interface Rejected {
  work: CarriedOut
  report: string
  problems: readonly string[]
}

const unaccepted = ({ report, problems }: Rejected, ...more: string[]): NodeOutcome => ({
  status: 'partial',
  value: report,
  error: null,
  problems: [...problems, ...more],
})

type Told = { move: Move }
type PlanDecided = ReturnType<typeof decided<'queen_plan'>>

/**
 * The plan of a later round begins failed work anew, whoever does which part of it. So the plan itself is given the work
 * instead: after a call that must not be repeated unseen one question is asked to people, before anybody begins. If they
 * say no, the result of the round before stands.
 */
function planOf(state: NodeState<Hierarchical>, round: number, before: Rejected | null): PlanDecided {
  const replaces = before?.work.failures.flatMap(({ runs }) => [...runs.keys]) ?? []
  const key = `plan ${round}`
  const plan = decided(state, {
    key,
    name: 'queen_plan',
    brief: () => planBrief(state, before),
    problemOf: ({ subtasks }) => planProblem(subtasks),
    ...(replaces.length > 0 ? { title: `Round ${round} of the queen's work`, replaces } : {}),
  })
  const isRefused = replaces.length > 0 && state.children.get(key)?.status === 'failed'
  if (before === null || !isRefused) return plan
  return { move: { end: unaccepted(before, state.children.get(key)?.error ?? '') } }
}

type Decided<Name extends 'queen_plan' | 'queen_review'> = Extract<
  ReturnType<typeof readDecision<Name>>,
  { ok: true }
>['decision']

/** The work that the first answer replaces is settled when the question is asked once more. */
interface Question<Name extends 'queen_plan' | 'queen_review'> extends Pick<Child, 'title' | 'replaces'> {
  key: string
  name: Name
  brief: () => string
  problemOf: (decision: Decided<Name>) => string | null
}

/** The decision of the queen, who is asked at most twice; or the next move until she has decided. */
function decided<Name extends 'queen_plan' | 'queen_review'>(
  state: NodeState<Hierarchical>,
  { key, name, brief, problemOf, ...more }: Question<Name>,
): Told | { decision: Decided<Name> } {
  const { node, previous, children } = state
  let problem = ''
  for (const attempt of attemptsOf(key)) {
    const answer = children.get(attempt)
    if (answer === null) return { move: 'wait' }
    if (answer === undefined) {
      const input =
        problem === '' ? brief() : `${brief()}\n\nYour last answer did not fit: ${problem} Answer once more.`
      const leaf: AgentLeaf = { type: 'task', agent: node.queen, input: '{{item}}' }
      const child = { key: attempt, node: leaf, previous, item: input, answer: decisionOf(name) }
      return { move: { start: [attempt === key ? { ...child, ...more } : child], toCome: 0 } }
    }
    if (answer.status === 'failed') return { move: { end: failed(answer.error) } }
    const read = readDecision(name, answer.value)
    problem = read.ok ? (problemOf(read.decision) ?? '') : read.problem
    if (read.ok && problem === '') return { decision: read.decision }
  }
  return { move: { end: failed(`The queen's answer to ${name} did not fit: ${problem}`) } }
}

function planBrief({ node, render }: NodeState<Hierarchical>, before: Rejected | null): string {
  const last =
    before === null
      ? ''
      : `\n\n${outcomesOf(before.work)}\n\nThe last result was not acceptable:\n${listed(before.problems)}`
  return `You lead a team. Break this goal down into subtasks with their dependencies, and say how many workers each needs.\n\nThe goal: ${inText(render(node.goal))}\n\nThe workers: ${node.workers.join(', ')}${last}`
}

function reviewBrief({ node, render }: NodeState<Hierarchical>, work: CarriedOut): string {
  return `Your team has worked on this goal: ${inText(render(node.goal))}\n\nPut what they found together into one report, and say whether it is acceptable.\n\n${outcomesOf(work)}`
}

/** The results of the subtasks; a failed one has the calls that its workers have made. */
function outcomesOf({ done, failures }: CarriedOut): string {
  const results = done.map(({ subtask, value }) => `${subtask.title}:\n${inText(value)}`)
  const failed = failures.map(({ subtask, error }) => `${subtask.title}: ${error}`)
  return [...results, ...(failed.length > 0 ? [`These failed:\n${listed(failed)}`] : [])].join('\n\n')
}

const listed = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join('\n')
