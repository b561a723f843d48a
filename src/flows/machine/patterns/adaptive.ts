import { z } from 'zod'
import { unlessMissing } from '../../../kernel/explain-issue.ts'
import { nameField } from '../../../kernel/fields.ts'
import { countField, leafField, MOST_LEAVES, sharedFields, type Topology, topologies } from '../../../kernel/flow.ts'
import { idFrom } from '../../../kernel/id.ts'
import { didYouMean, withGuess } from '../../../kernel/nearest.ts'
import { completed, failed, type Move, type NodeState, partial } from '../move.ts'
import { type Pattern, type PatternCheck, type PatternGuide, workerNames } from '../pattern.ts'
import { itemsOf, MOST_NAMED_WORKERS, type Suits, sharedTasks, workersOf } from '../workload.ts'

const schema = z.strictObject({
  type: z.literal('adaptive'),
  ...sharedFields,
  topology: z.enum(topologies).optional(),
  edges: z
    .array(z.tuple([z.string(), z.string()]))
    .max(10_000)
    .optional(),
  workers: z.union([z.int().min(1).max(1_000), z.array(nameField).min(1).max(1_000)], {
    error: unlessMissing('must be the number of workers, or the list of their names'),
  }),
  tasks: z.array(leafField).min(1).max(MOST_LEAVES),
  overload: z.strictObject({ queue_length: countField }).optional(),
  switch: z.boolean().default(true),
  workload: z.string().min(1).max(200).optional(),
})
export type Adaptive = z.infer<typeof schema>
export type AdaptiveInput = z.input<typeof schema>

const guide: PatternGuide = {
  text: 'Shares tasks of uneven size among workers, and arranges the workers anew when some of them have too much to do. The topology says who may take waiting tasks from whom: in `hierarchical` nobody takes any, in `mesh` everybody takes from everybody, in `star` a hub hands the tasks out, in `custom` the edges say it. The output is the list of the results, in the order of the tasks.',
  fields: {
    topology:
      'The topology to begin with. Without it, the one that did best in earlier runs of the same workload is taken.',
    edges: 'Pairs `[from, to]` for the topology `custom`: `to` takes waiting tasks from `from`.',
    workers: 'The number of workers (`w1`, `w2`, …), or their names.',
    tasks: 'The leaves.',
    overload: '`{"queue_length": 10}`: a worker with more waiting tasks has too much to do.',
    switch: 'True (the default): the topology may change by itself. False: only people change it.',
    workload: 'A name for this kind of work. Runs of one workload learn from each other.',
  },
  example: {
    input: { topics: { short: 'tea', long: 'the history of tea in Europe' } },
    root: {
      type: 'adaptive',
      topology: 'mesh',
      workers: 2,
      tasks: [
        { type: 'task', function: 'muster.ask', args: { prompt: 'One sentence about {{input.topics.short}}.' } },
        { type: 'task', function: 'muster.ask', args: { prompt: 'A page about {{input.topics.long}}.' } },
        { type: 'task', function: 'muster.ask', args: { prompt: 'One question about {{input.topics.short}}.' } },
      ],
    },
  },
}

const suits: Suits = {
  summary: 'many tasks of uneven size, among which the workers are rearranged when some have too much',
  rank: 6,
  cues: [
    {
      weight: 10,
      speaks: /\b(adapt(ive|s)?( topology)?|topolog(y|ies)|mesh|hub[\s-]and[\s-]spoke)\b/i,
      because: 'the description names it',
    },
    {
      weight: 6,
      speaks:
        /\b(uneven|unpredictabl[ey]|burst[sy]?|bursty|fluctuat\w*|spik(e|es|y)|overload\w*|re-?balanc\w*|load[\s-]balanc\w*|(changing|varying|variable) (load|sizes?|effort|durations?)|some (take|are) (much|far) )/i,
      because: 'the load is uneven, so the workers are arranged anew when some have too much',
    },
  ],
  plan: (facts) => {
    const items = itemsOf(facts)
    const workers = workersOf(facts)
    const tasks = sharedTasks(facts, Math.max(workers, Math.min(items, MOST_NAMED_WORKERS)))
    const definition: Adaptive = { type: 'adaptive', topology: 'hierarchical', workers, tasks, switch: true }
    return { definition, workers, calls: items, rounds: Math.ceil(items / workers) }
  },
}

/** Starts all tasks at once; the pool deals them to the workers. The value lists the results in the order of tasks. */
export const adaptive: Pattern<Adaptive> = {
  type: 'adaptive',
  schema,
  next,
  parts: ({ tasks }) =>
    tasks.map((work, index) => ({ field: 'tasks', index, key: String(index), work, hasNoItem: true })),
  check: (node, check) => {
    checkTopology(node, check)
    return node
  },
  plannedLeaves: ({ tasks }) => tasks.length,
  expectedMs: ({ workers, tasks }, times) => times.atOnce(tasks.map(times.of), workerNames(workers).length),
  pool: (node) => ({
    workers: workerNames(node.workers),
    topology: initialTopology(node),
    possible: possibleTopologies(node),
    ...(node.edges ? { edges: node.edges } : {}),
    ...(node.overload ? { overload: { queueLength: node.overload.queue_length } } : {}),
    maySwitch: node.switch,
  }),
  topology: (node) => ({
    chosen: node.topology,
    initial: initialTopology(node),
    possible: possibleTopologies(node),
    workload: workloadOf(node),
    tasks: node.tasks,
    changed: (topology) => ({ ...node, topology }),
  }),
  suits,
  guide,
}

function next({ node, previous, children, open }: NodeState<Adaptive>): Move {
  if (children.size === 0) {
    return { start: node.tasks.map((task, place) => ({ key: String(place), node: task, isOwn: true, previous })) }
  }
  if (open > 0) return 'wait'
  const outcomes = [...children.values()].filter((outcome) => outcome !== null)
  const failures = outcomes.filter((outcome) => outcome.status === 'failed')
  const values = outcomes.map((outcome) => (outcome.status === 'failed' ? null : outcome.value))
  if (failures.length === 0) return { end: completed(values) }
  if (failures.length < outcomes.length) return { end: partial(values) }
  return { end: failed(`All ${outcomes.length} tasks failed. The first: ${failures[0]?.error}`) }
}

/** A node may have thousands of wrong edges, and a guess takes time. */
const MOST_GUESSES = 5

function checkTopology({ topology, edges, workers }: Adaptive, { say }: PatternCheck): void {
  const names = workerNames(workers)
  const known = new Set(names)
  let guesses = 0
  if (known.size < names.length) say('workers', 'names a worker twice')
  if (topology === 'custom' && !edges) say('edges', 'a custom topology needs edges; they may be an empty list')
  edges?.forEach((edge, index) => {
    const unknown = edge.find((end) => !known.has(end))
    if (unknown !== undefined) {
      const guess = guesses++ < MOST_GUESSES ? didYouMean(unknown, names) : ''
      say(`edges[${index}]`, withGuess(`there is no worker called ${unknown}`, guess))
    }
    if (edge[0] === edge[1]) say(`edges[${index}]`, 'leads from a worker to itself')
  })
}

const initialTopology = ({ topology }: Adaptive): Topology => topology ?? 'hierarchical'

/** The topologies that the node may have at all: only its author can give edges, which are used when it is custom. */
const possibleTopologies = ({ edges }: Adaptive): Topology[] =>
  edges ? ['hierarchical', 'mesh', 'star', 'custom'] : ['hierarchical', 'mesh', 'star']

const LONGEST_NAME = 200

/** The name that the node gives, else one made of its tasks' agents and functions: runs of one kind share the name. */
function workloadOf({ workload, tasks }: Adaptive): string {
  if (workload !== undefined) return workload
  const names = tasks.map((task) => ('agent' in task ? `agent ${task.agent}` : `function ${task.function}`))
  const kinds = [...new Set(names)].toSorted()
  const name = kinds.join(', ')
  return name.length <= LONGEST_NAME ? name : `${kinds.length} kinds of tasks, ${idFrom(name)}`
}
