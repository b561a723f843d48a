import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KnownNames, validateFlow } from './validate.ts'

const known: KnownNames = {
  isAgent: (name) => ['writer', 'editor'].includes(name),
  isFunction: (name) => ['load', 'f', 'g'].includes(name),
}
const f = { type: 'task', function: 'f' }
const write = { type: 'task', agent: 'writer', input: 'x' }
const deep = (levels: number): object => (levels === 0 ? f : { type: 'sequential', steps: [deep(levels - 1)] })

const valid: Record<string, object> = {
  'a leaf alone': f,
  'an agent without input': { type: 'task', agent: 'editor' },
  'with everything a node may have': {
    ...f,
    id: 'a-1',
    args: { a: 1 },
    retry: { max_retries: 2, backoff: 10 },
    timeout: 5,
  },
  sequential: { type: 'sequential', steps: [f, write] },
  parallel: { type: 'parallel', branches: [f], aggregate: 'merge' },
  'an aggregate of one’s own': { type: 'parallel', branches: [f], aggregate: 'g' },
  'an aggregate by an agent': { type: 'parallel', branches: [f], aggregate: write },
  loop: { type: 'loop', body: f, max_iterations: 3, until: 'g' },
  map_reduce: { type: 'map_reduce', items: [1], workers: 2, map: 'f', reduce: 'g' },
  'items from a template': {
    type: 'map_reduce',
    items: '{{input.docs}}',
    workers: 2,
    map: 'f',
    reduce: 'g',
    partition: 'range',
  },
  'items from a function': { type: 'map_reduce', items: 'load', workers: 2, map: write, reduce: 'g', partition: 'f' },
  pipeline: { type: 'pipeline', source: { function: 'load', args: {} }, stages: [f, write], on_error: 'skip' },
  fork_join: { type: 'fork_join', problem: 5, should_split: 'f', split: 'f', solve: write, join: 'g', workers: 2 },
  hierarchical: { type: 'hierarchical', queen: 'editor', workers: ['writer', 'writer'], goal: 'All of it.' },
  adaptive: { type: 'adaptive', topology: 'mesh', workers: 3, tasks: [f, f] },
  'a custom topology': { type: 'adaptive', topology: 'custom', edges: [['a', 'b']], workers: ['a', 'b'], tasks: [f] },
  'patterns within patterns': {
    type: 'sequential',
    steps: [{ type: 'parallel', branches: [{ type: 'loop', body: f, max_iterations: 1 }] }],
  },
  'nested as deep as allowed': deep(24),
}
for (const [name, root] of Object.entries(valid)) {
  test(`a flow that can run: ${name}`, () => {
    const checked = validateFlow(root, known)
    assert.deepEqual(checked.isValid ? [] : checked.problems, [])
  })
}

const invalid: { name: string; root: unknown; path: string; message: RegExp }[] = [
  { name: 'nothing', root: null, path: 'root', message: /must be a node/ },
  { name: 'a list', root: [f], path: 'root', message: /must be a node/ },
  { name: 'no type', root: { steps: [] }, path: 'root', message: /types are task, sequential/ },
  { name: 'an unknown type', root: { type: 'swarm' }, path: 'root', message: /"swarm"/ },
  { name: 'a type of every object', root: { type: 'toString' }, path: 'root', message: /"toString"/ },
  { name: 'a leaf of both kinds', root: { ...f, agent: 'writer' }, path: 'root', message: /either/ },
  { name: 'a leaf of no kind', root: { type: 'task' }, path: 'root', message: /either/ },
  {
    name: 'an unknown agent',
    root: { type: 'sequential', steps: [f, { ...write, agent: 'nobody' }] },
    path: 'root.steps[1].agent',
    message: /nobody/,
  },
  {
    name: 'an unknown function',
    root: { type: 'loop', body: f, max_iterations: 1, until: 'h' },
    path: 'root.until',
    message: /called h/,
  },
  { name: 'a property of nobody', root: { ...f, color: 'red' }, path: 'root', message: /color/ },
  { name: 'no steps', root: { type: 'sequential', steps: [] }, path: 'root.steps', message: /./ },
  {
    name: 'an inner node that is none',
    root: { type: 'parallel', branches: [f, 7] },
    path: 'root.branches[1]',
    message: /must be a node/,
  },
  {
    name: 'the same id twice',
    root: {
      type: 'sequential',
      steps: [
        { ...f, id: 'a' },
        { ...f, id: 'a' },
      ],
    },
    path: 'root.steps[1].id',
    message: /root\.steps\[0\]/,
  },
  { name: 'an id with a blank', root: { ...f, id: 'a b' }, path: 'root.id', message: /letters/ },
  {
    name: 'items that are none',
    root: { type: 'map_reduce', items: 7, workers: 1, map: 'f', reduce: 'f' },
    path: 'root.items',
    message: /list/,
  },
  {
    name: 'a source of nobody',
    root: { type: 'pipeline', source: 'nowhere', stages: [f] },
    path: 'root.source',
    message: /nowhere/,
  },
  {
    name: 'a custom topology without edges',
    root: { type: 'adaptive', topology: 'custom', workers: 2, tasks: [f] },
    path: 'root.edges',
    message: /needs/,
  },
  {
    name: 'an edge to nobody',
    root: { type: 'adaptive', topology: 'custom', edges: [['w1', 'w9']], workers: 2, tasks: [f] },
    path: 'root.edges[0]',
    message: /w9/,
  },
  {
    name: 'edges of a mesh',
    root: { type: 'adaptive', topology: 'mesh', edges: [['w1', 'w2']], workers: 2, tasks: [f] },
    path: 'root.edges',
    message: /only/,
  },
  {
    name: 'a worker twice',
    root: { type: 'adaptive', workers: ['a', 'a'], tasks: [f] },
    path: 'root.workers',
    message: /twice/,
  },
  { name: 'nesting', root: deep(25), path: `root${'.steps[0]'.repeat(25)}`, message: /25 deep/ },
  {
    name: 'too many leaves',
    root: { type: 'parallel', branches: Array.from({ length: 10_001 }, () => f) },
    path: 'root',
    message: /10001 leaves/,
  },
  { name: 'a timeout of 0', root: { ...f, timeout: 0 }, path: 'root.timeout', message: /./ },
]
for (const { name, root, path, message } of invalid) {
  test(`a flow that cannot run: ${name}`, () => {
    const checked = validateFlow(root, known)
    const problems = checked.isValid ? assert.fail('it was taken') : checked.problems
    assert.deepEqual(
      problems.map((problem) => problem.path),
      [path],
      JSON.stringify(problems),
    )
    assert.match(problems[0]?.message ?? '', message)
  })
}

test('all problems are said at once', () => {
  const root = {
    type: 'sequential',
    steps: [{ type: 'task', agent: 'a' }, { type: 'task', function: 'b' }, { type: 'x' }],
  }
  const checked = validateFlow(root, known)
  assert.equal(checked.isValid ? 0 : checked.problems.length, 3)
})
