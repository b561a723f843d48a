import { z } from 'zod'
import { type FlowNode, innerField, sharedFields, type Work, workField } from '../../../kernel/flow.ts'
import { isRecord } from '../../../kernel/is-record.ts'
import { kindOf } from '../../../kernel/kind-of.ts'
import { failed, flattened, leafOf, type Move, type NodeOutcome, type NodeState, partial } from '../move.ts'
import { numbered, type Pattern, type PatternGuide, workPart } from '../pattern.ts'
import { ASSUMED, countedItems, MOST_NAMED_WORKERS, MOST_WORKERS, type Suits, sharedTasks } from '../workload.ts'

const schema = z.strictObject({
  type: z.literal('parallel'),
  ...sharedFields,
  branches: z.array(innerField).min(1),
  aggregate: workField.optional(),
})
export interface Parallel<Inner = FlowNode> extends Omit<z.infer<typeof schema>, 'branches'> {
  branches: Inner[]
}
export interface ParallelInput<Inner> extends Omit<z.input<typeof schema>, 'branches'> {
  branches: Inner[]
}

const AGGREGATE = 'aggregate'

const guide: PatternGuide = {
  text: 'Starts all branches at once. The output is the list of their results, in the order of the branches, with null for a branch that failed. The node fails if all branches fail; if some fail, the flow run ends as `partial`.',
  fields: {
    branches: 'The nodes to run at the same time. A branch may be a pattern itself.',
    aggregate:
      'Puts the results together: `array` (the default) gives the list, `concat` one flat list, `merge` one object, in which later branches win and every result must be an object or null, and a function or leaf is given the list.',
  },
  example: {
    input: { plan: 'Open the shop on Sundays.' },
    root: {
      type: 'parallel',
      branches: [
        {
          type: 'task',
          id: 'pros',
          function: 'muster.ask',
          args: { prompt: 'What speaks for this plan?', input: '{{input.plan}}' },
        },
        {
          type: 'task',
          id: 'cons',
          function: 'muster.ask',
          args: { prompt: 'What speaks against this plan?', input: '{{input.plan}}' },
        },
      ],
      aggregate: {
        type: 'task',
        id: 'verdict',
        function: 'muster.condense',
        args: { prompt: 'Weigh these views against each other.', items: '{{item}}' },
      },
    },
  },
}

const suits: Suits = {
  summary: 'independent pieces at the same time, their results side by side',
  rank: 7,
  cues: [
    {
      weight: 4,
      speaks:
        /\b(in parallel|parallel|concurrent(ly)?|simultaneous(ly)?|at once|at the same time|side by side|swarm)\b/i,
      because: 'it is to be done at the same time',
    },
    { weight: 3, speaks: /\bindependent(ly)?\b/i, because: 'nothing depends on anything else' },
    {
      weight: 3,
      speaks:
        /\b(compare|different (models|prompts|angles|perspectives|views|experts)|second opinion|votes?|ask \w+ (experts|reviewers))\b/i,
      because: 'several agents look at the same thing',
    },
    {
      weight: 2,
      speaks: ({ items, steps }) => (items ?? 0) >= 2 && steps.length === 1,
      because: 'there are several things and no order among them',
    },
  ],
  plan: (facts) => {
    const items = facts.items ?? facts.workers ?? ASSUMED.items
    const workers = Math.min(facts.workers ?? Math.min(items, MOST_WORKERS), MOST_NAMED_WORKERS)
    const definition: Parallel = { type: 'parallel', branches: sharedTasks(facts, workers), aggregate: 'concat' }
    return { definition, workers, calls: items, rounds: Math.ceil(items / workers) }
  },
  counts: (facts) => {
    const { items, workers } = facts
    if (workers === null || items !== null) return countedItems(facts)
    return `Counts ${workers} workers, with one thing each.`
  },
}

/** Starts all branches at once. The whole fails only if all branches fail. */
export const parallel: Pattern<Parallel> = {
  type: 'parallel',
  schema,
  next: (state) => {
    const { node, previous, children, open } = state
    if (children.size === 0) {
      const start = node.branches.map(
        (branch, place) => ({ key: String(place), node: branch, isOwn: true, previous }) as const,
      )
      return { start }
    }
    if (open > 0) return 'wait'
    return children.has(AGGREGATE) ? endOfAggregate(state) : aggregate(state)
  },
  parts: ({ branches, aggregate }) => [...numbered('branches', branches), ...workPart(AGGREGATE, workOf(aggregate))],
  turnOf: (key) => (key === AGGREGATE ? 1 : 0),
  expectedMs: ({ branches, aggregate }, times) => times.atOnce(branches.map(times.of)) + times.work(workOf(aggregate)),
  functionFields: [AGGREGATE],
  suits,
  guide,
}

/** Undefined if Muster puts the results together itself. */
const workOf = (aggregate: Work | undefined): Work | undefined =>
  ['array', 'merge', 'concat'].includes(String(aggregate)) ? undefined : aggregate

function aggregate({ node, previous, children }: NodeState<Parallel>): Move {
  const branches = [...children.values()].filter((branch) => branch !== null)
  const failures = branches.filter((branch) => branch.status === 'failed')
  const isWhole = branches.every((branch) => branch.status === 'completed')
  if (failures.length === branches.length) {
    return { end: failed(`All ${branches.length} branches failed. The first: ${failures[0]?.error}`) }
  }
  const values = branches.map((branch) => (branch.status === 'failed' ? null : branch.value))
  const finished = (value: unknown): Move => ({
    end: isWhole ? { status: 'completed', value, error: null } : partial(value),
  })
  switch (node.aggregate) {
    case undefined:
    case 'array':
      return finished(values)
    case 'concat':
      return finished(flattened(values.filter((value) => value !== null)))
    case 'merge': {
      const wrong = values.findIndex((value) => value !== null && !isRecord(value))
      return wrong === -1 ? finished(Object.assign({}, ...values)) : { end: failed(cannotMerge(node, wrong, values)) }
    }
    default:
      return { start: [{ key: AGGREGATE, node: leafOf(node.aggregate), previous, item: values }] }
  }
}

function endOfAggregate({ children }: NodeState<Parallel>): Move {
  const outcome = children.get(AGGREGATE)
  if (!outcome || outcome.status === 'failed') return { end: outcome ?? failed('The results were not put together.') }
  const isWhole = [...children.values()].every((child: NodeOutcome | null) => child?.status === 'completed')
  return { end: isWhole ? outcome : partial(outcome.value) }
}

/** Null has nothing to merge; any other value would be lost. */
function cannotMerge({ branches }: Parallel, place: number, values: readonly unknown[]): string {
  const id = branches[place]?.id
  const branch = `branches[${place}]${id === undefined ? '' : ` (${id})`}`
  return `merge puts objects together, and the result of ${branch} is ${kindOf(values[place])}.`
}
