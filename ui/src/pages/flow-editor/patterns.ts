// The patterns as the editor knows them: the fields of each with their hints, and a node to begin with. A test holds
// the hints and the fields against the patterns of Muster.

/** Fields that hold nodes: any node, leaves alone, or work (a leaf or the name of a function). */
export type SlotKind = 'nodes' | 'node' | 'leaves' | 'work'
export type FieldKind =
  | SlotKind
  | 'value'
  | 'text'
  | 'count'
  | 'switch'
  | 'choice'
  | 'agent'
  | 'agents'
  | 'edges'
  | 'workers'
  | 'overload'

export interface PatternField {
  name: string
  kind: FieldKind
  label: string
  hint: string
  isOptional?: true
  /** The words that the field takes. For work: words that are no names of functions. */
  choices?: readonly string[]
}

export interface PatternShape {
  type: string
  label: string
  summary: string
  fields: readonly PatternField[]
  /** A node to begin with, which needs little to run. */
  blank: Readonly<Record<string, unknown>>
}

/** The words with which a leaf begins, so that a new flow can run before anybody has written better ones. */
export const ON_PREVIOUS = 'Work on this: {{previous}}'
const ask = (prompt: string, more: object = {}) => ({ type: 'task', function: 'muster.ask', args: { prompt, ...more } })

export const patternShapes: readonly PatternShape[] = [
  {
    type: 'sequential',
    label: 'Sequential',
    summary: 'steps one after the other, each with the result of the one before',
    fields: [
      {
        name: 'steps',
        kind: 'nodes',
        label: 'Steps',
        hint: 'The nodes to run, in their order. A step may be a pattern itself.',
      },
    ],
    blank: { type: 'sequential', steps: [ask(ON_PREVIOUS)] },
  },
  {
    type: 'parallel',
    label: 'Parallel',
    summary: 'independent pieces at the same time, their results side by side',
    fields: [
      {
        name: 'branches',
        kind: 'nodes',
        label: 'Branches',
        hint: 'The nodes to run at the same time. A branch may be a pattern itself.',
      },
      {
        name: 'aggregate',
        kind: 'work',
        label: 'Aggregate',
        hint: 'Puts the results together: `array` (the default) gives the list, `concat` one flat list, `merge` one object, in which later branches win and every result must be an object or null, and a function or leaf is given the list.',
        isOptional: true,
        choices: ['array', 'concat', 'merge'],
      },
    ],
    blank: { type: 'parallel', branches: [ask(ON_PREVIOUS), ask(ON_PREVIOUS)] },
  },
  {
    type: 'loop',
    label: 'Loop',
    summary: 'one step again and again until the result is good enough',
    fields: [
      { name: 'body', kind: 'node', label: 'Body', hint: 'The node to repeat. It may be a pattern itself.' },
      { name: 'max_iterations', kind: 'count', label: 'Rounds', hint: 'The most rounds.' },
      {
        name: 'until',
        kind: 'work',
        label: 'Until',
        hint: 'A function or leaf that is given `{output, iteration}` after each round. The loop ends when it answers true, or a text that begins with yes, true or done; every other answer starts the next round. Without it the loop makes all rounds.',
        isOptional: true,
      },
    ],
    blank: { type: 'loop', body: ask('Improve this.', { input: '{{previous}}' }), max_iterations: 3 },
  },
  {
    type: 'map_reduce',
    label: 'Map and reduce',
    summary: 'many items, each worked on by itself, and the results put together into one',
    fields: [
      {
        name: 'items',
        kind: 'value',
        label: 'Items',
        hint: 'The list: a value, a template, or a function that gives a list or an (async) iterable: its name, or `{"function": …, "args": …}`.',
      },
      { name: 'workers', kind: 'count', label: 'Workers', hint: 'The number of parts.' },
      { name: 'map', kind: 'work', label: 'Map', hint: 'A function or leaf for each part.' },
      {
        name: 'reduce',
        kind: 'work',
        label: 'Reduce',
        hint: 'A function or leaf for all values, or for the values of each key.',
      },
      {
        name: 'partition',
        kind: 'work',
        label: 'Partition',
        hint: 'Spreads the keys over the reducers: `hash` (the default), `range`, or a function that is given `{key, partitions}` and answers 0 to partitions - 1.',
        isOptional: true,
        choices: ['hash', 'range'],
      },
      {
        name: 'reducers',
        kind: 'count',
        label: 'Reducers',
        hint: 'The number of groups in which the keys are reduced.',
        isOptional: true,
      },
    ],
    blank: {
      type: 'map_reduce',
      items: '{{input.items}}',
      workers: 2,
      map: { type: 'task', function: 'muster.ask_each', args: { prompt: 'Sum this up.', items: '{{item.items}}' } },
      reduce: {
        type: 'task',
        function: 'muster.condense',
        args: { prompt: 'Put these together.', items: '{{item.values}}' },
      },
    },
  },
  {
    type: 'pipeline',
    label: 'Pipeline',
    summary: 'items that pass the same stages one after the other as they arrive',
    fields: [
      {
        name: 'source',
        kind: 'value',
        label: 'Source',
        hint: 'The items: a list, a template, or a function that gives a list or an (async) iterable: its name, or `{"function": …, "args": …}`.',
      },
      { name: 'stages', kind: 'leaves', label: 'Stages', hint: 'Leaves, in their order.' },
      {
        name: 'buffer',
        kind: 'count',
        label: 'Buffer',
        hint: 'The most items that wait between two stages. The default is the setting `pipeline_buffer` of the project.',
        isOptional: true,
      },
      {
        name: 'on_error',
        kind: 'choice',
        label: 'On error',
        hint: '`stop` (the default): an item that fails ends the node. `skip`: the item is left out and counted, and the flow goes on.',
        isOptional: true,
        choices: ['stop', 'skip'],
      },
    ],
    blank: { type: 'pipeline', source: '{{input.items}}', stages: [ask('Work on this.', { input: '{{item}}' })] },
  },
  {
    type: 'fork_join',
    label: 'Fork and join',
    summary: 'one large problem that is split until its pieces are small, solved and joined',
    fields: [
      { name: 'problem', kind: 'value', label: 'Problem', hint: 'The whole problem: a value or a template.' },
      {
        name: 'should_split',
        kind: 'work',
        label: 'Should split',
        hint: 'A function or leaf that answers true, or a text that begins with yes, true or done, while the piece is too large. Every other answer means that it is small enough.',
      },
      { name: 'split', kind: 'work', label: 'Split', hint: 'A function or leaf that answers the list of parts.' },
      { name: 'solve', kind: 'work', label: 'Solve', hint: 'A function or leaf for a piece that is small enough.' },
      {
        name: 'join',
        kind: 'work',
        label: 'Join',
        hint: 'A function or leaf that puts the results of the parts together.',
      },
      {
        name: 'workers',
        kind: 'count',
        label: 'Workers',
        hint: 'The number of workers to which the pieces are dealt.',
      },
      {
        name: 'stealing',
        kind: 'switch',
        label: 'Stealing',
        hint: 'True (the default): an idle worker takes pieces of another one. False: a piece stays where it was dealt.',
        isOptional: true,
      },
    ],
    blank: {
      type: 'fork_join',
      problem: '{{input.text}}',
      should_split: { type: 'task', function: 'muster.is_larger', args: { of: '{{item}}', than: 2_000 } },
      split: { type: 'task', function: 'muster.chunk', args: { of: '{{item}}', size: 2_000 } },
      solve: ask('Work on this.', { input: '{{item}}' }),
      join: { type: 'task', function: 'muster.condense', args: { prompt: 'Put these together.', items: '{{item}}' } },
      workers: 2,
    },
  },
  {
    type: 'hierarchical',
    label: 'Hierarchical',
    summary: 'a goal whose subtasks are not known yet: a queen plans, hands out the work and judges it',
    fields: [
      {
        name: 'queen',
        kind: 'agent',
        label: 'Queen',
        hint: 'The name or id of the agent that plans and judges.',
      },
      {
        name: 'workers',
        kind: 'agents',
        label: 'Workers',
        hint: 'The names or ids of the agents that do the subtasks. The same agent may stand in the list several times.',
      },
      { name: 'goal', kind: 'text', label: 'Goal', hint: 'The goal, as a text with templates.' },
    ],
    blank: { type: 'hierarchical', queen: '', workers: [], goal: '{{input.goal}}' },
  },
  {
    type: 'adaptive',
    label: 'Adaptive',
    summary: 'many tasks of uneven size, among which the workers are rearranged when some have too much',
    fields: [
      {
        name: 'topology',
        kind: 'choice',
        label: 'Topology',
        hint: 'The topology to begin with. Without it, the one that did best in earlier runs of the same workload is taken.',
        isOptional: true,
        choices: ['hierarchical', 'mesh', 'star', 'custom'],
      },
      {
        name: 'edges',
        kind: 'edges',
        label: 'Edges',
        hint: 'Pairs `[from, to]` for the topology `custom`: `to` takes waiting tasks from `from`.',
        isOptional: true,
      },
      {
        name: 'workers',
        kind: 'workers',
        label: 'Workers',
        hint: 'The number of workers (`w1`, `w2`, …), or their names.',
      },
      { name: 'tasks', kind: 'leaves', label: 'Tasks', hint: 'The leaves.' },
      {
        name: 'overload',
        kind: 'overload',
        label: 'Overload',
        hint: '`{"queue_length": 10}`: a worker with more waiting tasks has too much to do.',
        isOptional: true,
      },
      {
        name: 'switch',
        kind: 'switch',
        label: 'Switch',
        hint: 'True (the default): the topology may change by itself. False: only people change it.',
        isOptional: true,
      },
      {
        name: 'workload',
        kind: 'text',
        label: 'Workload',
        hint: 'A name for this kind of work. Runs of one workload learn from each other.',
        isOptional: true,
      },
    ],
    blank: { type: 'adaptive', workers: 2, tasks: [ask(ON_PREVIOUS)] },
  },
]

export const shapeOf = (type: unknown): PatternShape | undefined => patternShapes.find((shape) => shape.type === type)

const SLOTS: readonly string[] = ['nodes', 'node', 'leaves', 'work'] satisfies SlotKind[]
export interface Slot extends PatternField {
  kind: SlotKind
}
const isSlot = (field: PatternField): field is Slot => SLOTS.includes(field.kind)

export const slotsOf = (type: unknown): Slot[] => shapeOf(type)?.fields.filter(isSlot) ?? []
