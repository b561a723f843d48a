// A flow for each pattern, and one of patterns within patterns. Undisturbed, all flows take about the same time, so
// that a kill at any time hits most of them in the middle.
import type { BuiltInNode } from '../../src/flows/machine/built-in-patterns.ts'

export interface CrashFlow {
  root: BuiltInNode
  /** The most leaves that are executed at once. */
  workers?: number
}

type LeafNode = Extract<BuiltInNode, { type: 'task' }>
const call = (name: string, more: object = {}): LeafNode => ({ type: 'task', function: name, ...more })
/** The input of a flow run is its tag. */
const agent = (prompt: string, more: object = {}): LeafNode => ({
  type: 'task',
  agent: 'worker',
  input: `<{{input}}> ${prompt}`,
  ...more,
})
const list = <Value>(length: number, make: (place: number) => Value): Value[] =>
  Array.from({ length }, (_, place) => make(place))

const mapReduce: BuiltInNode = {
  type: 'map_reduce',
  items: 'numbers',
  map: 'pairs',
  reduce: 'total',
  partition: 'place',
  workers: 8,
  reducers: 3,
}

const hierarchical: BuiltInNode = {
  type: 'hierarchical',
  queen: 'queen',
  workers: ['worker', 'helper'],
  goal: '<{{input}}> Find out.',
}

export const crashFlowNames = [
  'sequential',
  'parallel',
  'loop',
  'map_reduce',
  'pipeline',
  'fork_join',
  'hierarchical',
  'adaptive',
  'nested',
] as const
export type CrashFlowName = (typeof crashFlowNames)[number]

export const crashFlows: Record<CrashFlowName, CrashFlow> = {
  sequential: {
    root: {
      type: 'sequential',
      steps: [
        call('grow', { id: 'first', args: 'a seed' }),
        ...list(10, () => call('grow')),
        call('grow', { id: 'last' }),
      ],
    },
  },
  parallel: {
    root: {
      type: 'parallel',
      branches: list(24, (place) => call('grow', { id: `branch-${place}`, args: place })),
      aggregate: 'together',
    },
    workers: 3,
  },
  loop: {
    root: {
      type: 'loop',
      body: call('grow', { id: 'again', args: '{{results.again?}}' }),
      max_iterations: 20,
      until: 'enough',
    },
  },
  map_reduce: { root: mapReduce, workers: 2 },
  pipeline: {
    root: {
      type: 'pipeline',
      source: 'supply',
      buffer: 2,
      on_error: 'stop' as const,
      stages: [call('grow'), call('grow'), call('ponder')],
    },
  },
  fork_join: {
    root: {
      type: 'fork_join',
      problem: list(16, (place) => place),
      workers: 2,
      stealing: true,
      should_split: 'is_large',
      split: 'halves',
      solve: 'sum',
      join: 'sum',
    },
  },
  hierarchical: { root: hierarchical },
  adaptive: {
    root: {
      type: 'adaptive',
      topology: 'hierarchical',
      workers: 3,
      overload: { queue_length: 4 },
      switch: true,
      tasks: list(24, (place) => call('grow', { id: `task-${place}`, args: place })),
    },
  },
  nested: {
    root: {
      type: 'sequential',
      steps: [
        call('grow', { args: 'a seed' }),
        {
          type: 'parallel',
          branches: [
            mapReduce,
            { type: 'loop', body: agent('Say more than {{previous}}.', { id: 'talk' }), max_iterations: 3 },
          ],
        },
        call('grow', { id: 'last' }),
      ],
    },
    workers: 3,
  },
}

/** Agents in nested patterns, for which one slot must be enough. */
export const manyAgents: CrashFlow = {
  root: {
    type: 'sequential',
    steps: [
      agent('Begin.', { id: 'begin' }),
      {
        type: 'parallel',
        branches: [
          agent('Do it after {{previous}}.'),
          { type: 'loop', body: agent('Say more than {{previous}}.'), max_iterations: 3 },
          { type: 'sequential', steps: [call('grow', { args: 'a seed' }), hierarchical] },
          { type: 'parallel', branches: list(4, (place) => agent(`Do part ${place}.`)) },
        ],
      },
      agent('Put together: {{previous}}.', { id: 'end' }),
    ],
  },
}

/** One example of each kind of work that may be done a second time: a leaf, an agent, an item of a pipeline. */
export const oneOfEach: CrashFlow = {
  root: {
    type: 'sequential',
    steps: [call('grow', { args: 'a seed' }), agent('Go on.'), crashFlows.pipeline.root, call('together')],
  },
}
