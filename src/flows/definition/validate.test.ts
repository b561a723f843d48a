import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuTime } from '../../../test/kit/cpu-time.ts'
import { topologies } from '../../kernel/flow.ts'
import { builtInPatterns } from '../machine/built-in-patterns.ts'
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
  ...Object.fromEntries(
    [...topologies, undefined].flatMap((topology) =>
      [[], [['w1', 'w2']]].map((edges) => [
        `edges are accepted with every topology, and may be empty: ${topology}, ${edges.length}`,
        { type: 'adaptive', ...(topology ? { topology } : {}), edges, workers: 2, tasks: [f] },
      ]),
    ),
  ),
  'patterns within patterns': {
    type: 'sequential',
    steps: [{ type: 'parallel', branches: [{ type: 'loop', body: f, max_iterations: 1 }] }],
  },
  'nested as deep as allowed': deep(24),
  'templates of every root': { ...f, args: ['{{input.a}}', '{{previous}}', '{{item?}}', 'x {{results}} y'] },
  'a result of a leaf, of a pattern, of a later leaf and of itself': {
    type: 'loop',
    id: 'all',
    max_iterations: 2,
    body: {
      type: 'sequential',
      steps: [
        { ...f, id: 'a', args: '{{results.a?}} {{results.all?}} {{results.b?}} {{results.judge.x?}}' },
        { type: 'map_reduce', id: 'b', items: '{{results.a}}', workers: 1, map: 'f', reduce: { ...f, id: 'sum' } },
      ],
    },
    until: { ...f, id: 'judge', args: '{{results.sum}}' },
  },
  'double braces that are no template': { ...f, args: { code: "style={{ color: 'red' }}", '{{foo}}': '{{}}' } },
}
for (const [name, root] of Object.entries(valid)) {
  test(`a flow that can run: ${name}`, () => {
    const checked = validateFlow(root, known, builtInPatterns)
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
  { name: 'an unknown property', root: { ...f, color: 'red' }, path: 'root', message: /color/ },
  { name: 'no steps', root: { type: 'sequential', steps: [] }, path: 'root.steps', message: /./ },
  {
    name: 'an inner value that is no node',
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
    name: 'items that are no list',
    root: { type: 'map_reduce', items: 7, workers: 1, map: 'f', reduce: 'f' },
    path: 'root.items',
    message: /list/,
  },
  {
    name: 'an unknown source',
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
    name: 'an edge to an unknown worker',
    root: { type: 'adaptive', topology: 'custom', edges: [['w1', 'w9']], workers: 2, tasks: [f] },
    path: 'root.edges[0]',
    message: /w9/,
  },
  {
    name: 'an edge of a mesh to nobody',
    root: { type: 'adaptive', topology: 'mesh', edges: [['w1', 'w9']], workers: 2, tasks: [f] },
    path: 'root.edges[0]',
    message: /w9/,
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
  ...Object.entries(templatePlaces('{{results.dratf}}')).map(([place, root]) => ({
    name: `a result of nobody in ${place}`,
    root,
    path: `root.${place}`,
    message: /^\{\{results\.dratf\}\}: there is no leaf called dratf\. Did you mean "draft"\?$/,
  })),
  ...Object.entries(templatePlaces('{{inputs.topic}}')).map(([place, root]) => ({
    name: `an unknown root in ${place}`,
    root,
    path: `root.${place}`,
    message: /^\{\{inputs\.topic\}\}: begins with none of .* Did you mean "input"\?$/,
  })),
  {
    name: 'a result that may be missing, of nobody',
    root: { ...f, args: 'x {{results.nobody?}}' },
    path: 'root.args',
    message: /no leaf called nobody$/,
  },
  {
    name: 'a result of a stage',
    root: {
      type: 'pipeline',
      source: [1],
      stages: [
        { ...f, id: 'a' },
        { ...f, args: '{{results.a}}' },
      ],
    },
    path: 'root.stages[1].args',
    message: /the leaf a works on one item after the other/,
  },
  {
    name: 'a text with a template as items',
    root: { type: 'map_reduce', items: 'all of {{input}}', workers: 1, map: 'f', reduce: 'f' },
    path: 'root.items',
    message: /must be a list, a template/,
  },
  { name: 'a timeout of 0', root: { ...f, timeout: 0 }, path: 'root.timeout', message: /./ },
]
for (const { name, root, path, message } of invalid) {
  test(`a flow that cannot run: ${name}`, () => {
    const checked = validateFlow(root, known, builtInPatterns)
    const problems = checked.isValid ? assert.fail('the flow was accepted') : checked.problems
    assert.deepEqual(
      problems.map((problem) => problem.path),
      [path],
      JSON.stringify(problems),
    )
    assert.match(problems[0]?.message ?? '', message)
  })
}

/** A flow for each place in which a template may stand. It has a leaf that is called draft. */
function templatePlaces(text: string): Record<string, object> {
  const draft = { ...f, id: 'draft' }
  const mapped = { type: 'map_reduce', workers: 1, map: 'f', reduce: draft }
  const forked = { type: 'fork_join', should_split: 'f', split: 'f', solve: 'f', join: draft, workers: 1 }
  return {
    'steps[1].args': { type: 'sequential', steps: [draft, { ...f, args: text }] },
    'steps[1].args.a[1]': { type: 'sequential', steps: [draft, { ...f, args: { a: [0, `x ${text}`] } }] },
    'steps[1].input': { type: 'sequential', steps: [draft, { ...write, input: text }] },
    'aggregate.args': { type: 'parallel', branches: [draft], aggregate: { ...f, args: text } },
    'until.args': { type: 'loop', body: draft, max_iterations: 1, until: { ...f, args: text } },
    items: { ...mapped, items: text },
    'items[1]': { ...mapped, items: ['a', text] },
    'items.args.n': { ...mapped, items: { function: 'load', args: { n: text } } },
    'map.input': { ...mapped, items: [1], map: { ...write, input: text } },
    'partition.args': { ...mapped, items: [1], partition: { ...f, args: text } },
    problem: { ...forked, problem: text },
    'problem.of': { ...forked, problem: { of: text } },
    'problem.args': { ...forked, problem: { function: 'load', args: text } },
    'solve.args': { ...forked, problem: 1, solve: { ...f, args: text } },
    'tasks[1].args': { type: 'adaptive', workers: 1, tasks: [draft, { ...f, args: text }] },
    'steps[1].source': { type: 'sequential', steps: [draft, { type: 'pipeline', source: text, stages: [f] }] },
    'steps[1].source.args': {
      type: 'sequential',
      steps: [draft, { type: 'pipeline', source: { function: 'load', args: text }, stages: [f] }],
    },
    'steps[1].stages[0].args': {
      type: 'sequential',
      steps: [draft, { type: 'pipeline', source: [1], stages: [{ ...f, args: text }] }],
    },
    'steps[1].goal': {
      type: 'sequential',
      steps: [draft, { type: 'hierarchical', queen: 'editor', workers: ['writer'], goal: `Do ${text}.` }],
    },
  }
}

const withItem = [
  'aggregate.args',
  'until.args',
  'map.input',
  'partition.args',
  'solve.args',
  'steps[1].stages[0].args',
]
for (const [place, root] of Object.entries(templatePlaces('{{item.name}}'))) {
  test(`a template that names an item, in ${place}, is ${withItem.includes(place) ? 'fine' : 'wrong'}`, () => {
    const checked = validateFlow(root, known, builtInPatterns)
    const problems = checked.isValid ? [] : checked.problems
    const told = problems.map(({ path, message }) => `${path} ${message.slice(0, 37)}`)
    assert.deepEqual(told, withItem.includes(place) ? [] : [`root.${place} {{item.name}}: there is no item here:`])
  })
}
test('an item that may be missing is no mistake', () => {
  assert.ok(validateFlow({ ...f, args: '{{item?}}' }, known, builtInPatterns).isValid)
})

test('a flow with a hundred thousand wrong templates is refused at once, and the answer is short', () => {
  const names = Array.from({ length: 5_000 }, (_, place) => ({ ...f, id: `${'x'.repeat(60)}${place}` }))
  const args = Array.from({ length: 100_000 }, () => `{{results.${'y'.repeat(60)}}}`)
  const started = cpuTime()
  const checked = validateFlow({ type: 'parallel', branches: [...names, { ...f, args }] }, known, builtInPatterns)
  assert.equal(checked.isValid ? 0 : checked.problems.length, 100)
  assert.ok(cpuTime() - started < 5_000)
})

test('braces around a hundred thousand open brackets are read in one pass', () => {
  const started = cpuTime()
  for (const text of [
    `{{${'["'.repeat(200_000)}}}`,
    `{{input${'['.repeat(400_000)}}}`,
    `{{input["${'a'.repeat(400_000)}}}`,
  ])
    assert.ok(validateFlow({ ...f, args: text }, known, builtInPatterns))
  assert.ok(cpuTime() - started < 10_000)
})

test('all problems of a flow are listed at once', () => {
  const root = {
    type: 'sequential',
    steps: [{ type: 'task', agent: 'a' }, { type: 'task', function: 'b' }, { type: 'x' }],
  }
  const checked = validateFlow(root, known, builtInPatterns)
  assert.equal(checked.isValid ? 0 : checked.problems.length, 3)
})
