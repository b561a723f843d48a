import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuTime } from '../../../test/kit/cpu-time.ts'
import { type BuiltInNode, builtInPatterns } from './built-in-patterns.ts'
import type { FlowLeaf } from './flow-leaf.ts'
import { createMachine, type LeafOutcome } from './machine.ts'
import type { NodeOutcome } from './move.ts'
import { sharesOf } from './shares.ts'

type Functions = Record<string, (argument: never, task: FlowLeaf) => unknown>

interface Played {
  outcome: NodeOutcome
  tasks: FlowLeaf[]
  /** The largest number of leaves that were under way at once. */
  most: number
}

/** Plays a flow to its end. `pick` chooses which of the leaves under way ends next. */
function play(
  root: BuiltInNode,
  functions: Functions,
  input: unknown = null,
  pick = (count: number) => count - 1,
): Played {
  const machine = createMachine(root, input, builtInPatterns)
  const tasks: FlowLeaf[] = []
  const open: FlowLeaf[] = []
  let most = 0
  const take = (started: FlowLeaf[]): void => {
    tasks.push(...started)
    open.push(...started)
    most = Math.max(most, open.length)
  }
  take(machine.begin())
  while (open.length > 0) {
    const [task] = open.splice(pick(open.length), 1)
    if (task) take(machine.settle(task.id, callLeaf(functions, task)))
  }
  return { outcome: machine.outcome() ?? assert.fail('the flow did not end'), tasks, most }
}

const givenTo = ({ calls, argumentOf }: FlowLeaf): unknown[] =>
  Array.from({ length: calls }, (_, place) => argumentOf(place))

function callLeaf(functions: Functions, task: FlowLeaf): LeafOutcome {
  const name = 'function' in task.node ? task.node.function : task.node.agent
  const call = functions[name] ?? assert.fail(`there is no ${name}`)
  try {
    const one = (argument: unknown): unknown => call(argument as never, task) // each test knows what its function gets
    const value = task.isEach ? givenTo(task).map(one) : one(task.argumentOf(0))
    return { status: 'completed', value }
  } catch (error) {
    return { status: 'failed', error: error instanceof Error ? error.message : String(error) }
  }
}

const f = (name: string, more: object = {}): BuiltInNode => ({ type: 'task', function: name, ...more })
const basics: Functions = {
  add: (n: number) => n + 1,
  double: (n: number) => n * 2,
  fail: () => {
    throw new Error('broken')
  },
  echo: (value: unknown) => value,
  one: () => 1,
  two: () => 2,
}
const ids = ({ tasks }: Played): string[] => tasks.map((task) => task.id)

test('Execute sequential tasks: each task is given the result of the task before', () => {
  const played = play({ type: 'sequential', steps: [f('add'), f('double'), f('add')] }, basics, 1)
  assert.deepEqual(played.outcome, { status: 'completed', value: 5, error: null })
  assert.deepEqual(ids(played), ['root/0', 'root/1', 'root/2'])
  assert.equal(played.most, 1)
})

test('Sequential flow with failure: later steps are not started', () => {
  const played = play({ type: 'sequential', steps: [f('add'), f('fail'), f('add')] }, basics, 1)
  assert.deepEqual([played.outcome.status, played.outcome.error], ['failed', 'broken'])
  assert.deepEqual(ids(played), ['root/0', 'root/1'])
})

test('Sequential flow with retry: the step is retried up to the limit, then it has failed', () => {
  let calls = 0
  const flaky: Functions = {
    ...basics,
    flaky: () => {
      calls++
      if (calls < 3) throw new Error('not yet')
      return 'at last'
    },
  }
  const node = f('flaky', { id: 'x', retry: { max_retries: 3, backoff: 50 } })
  const played = play({ type: 'sequential', steps: [node] }, flaky)
  assert.deepEqual(played.outcome.value, 'at last')
  assert.deepEqual(
    played.tasks.map(({ id, attempt, afterMs }) => [id, attempt, afterMs]),
    [
      ['x', 1, 0],
      ['x', 2, 50],
      ['x', 3, 50],
    ],
  )
  const given = play(f('fail', { retry: { max_retries: 3, backoff: 0 } }), basics)
  assert.equal(given.tasks.length, 4)
  assert.equal(given.outcome.status, 'failed')
})

test('a pattern that is retried begins anew, and its children have other ids', () => {
  const inner: BuiltInNode = {
    type: 'sequential',
    id: 'inner',
    steps: [f('one', { id: 'a' }), f('fail')],
    retry: { max_retries: 2, backoff: 7 },
  }
  const played = play({ type: 'sequential', steps: [inner] }, basics)
  assert.deepEqual(ids(played), ['a', 'inner/1', 'a~2', 'inner~2/1', 'a~3', 'inner~3/1'])
  assert.equal(played.tasks[2]?.afterMs, 7)
})

test('where what is tried again stands within what is tried again, every life has ids of its own', () => {
  const again = { max_retries: 1, backoff: 0 }
  const inner: BuiltInNode = {
    type: 'sequential',
    id: 'inner',
    steps: [f('one', { id: 'a' }), f('fail')],
    retry: again,
  }
  const loop: BuiltInNode = { type: 'loop', body: f('one', { id: 'b' }), max_iterations: 2 }
  const played = play({ type: 'sequential', id: 'outer', steps: [loop, inner], retry: again }, basics)
  assert.deepEqual(ids(played), [
    ...['b', 'b~1#2', 'a', 'inner/1', 'a~1~2', 'inner~1~2/1'],
    ...['b~2#1', 'b~2#2', 'a~2~1', 'inner~2~1/1', 'a~2~2', 'inner~2~2/1'],
  ])
})

test('Execute parallel tasks: all branches start at once, and the results keep their order', () => {
  const root: BuiltInNode = { type: 'parallel', branches: [f('one'), f('two'), f('echo')] }
  for (const pick of [() => 0, (count: number) => count - 1]) {
    const played = play(root, basics, 'in', pick)
    assert.equal(played.most, 3)
    assert.deepEqual(played.outcome.value, [1, 2, 'in'])
  }
})

test('Parallel flow with partial failure: the other branches go on, and null stands for the failed one', () => {
  const played = play({ type: 'parallel', branches: [f('one'), f('fail'), f('two')] }, basics)
  assert.deepEqual(played.outcome, { status: 'partial', value: [1, null, 2], error: null })
  const none = play({ type: 'parallel', branches: [f('fail'), f('fail')] }, basics)
  assert.equal(none.outcome.status, 'failed')
})

test('Parallel flow with result aggregation: array, merge, concat, or a function', () => {
  const make = (aggregate: string | undefined): unknown => {
    const branches = [f('echo', { args: { a: 1, b: 1 } }), f('echo', { args: { b: 2 } })]
    const lists = [f('echo', { args: [1, 2] }), f('echo', { args: [3] })]
    const root = { type: 'parallel', branches: aggregate === 'concat' ? lists : branches, aggregate } as BuiltInNode
    return play(root, { ...basics, count: (values: unknown[]) => values.length }).outcome.value
  }
  assert.deepEqual(make(undefined), [{ a: 1, b: 1 }, { b: 2 }])
  assert.deepEqual(make('merge'), { a: 1, b: 2 })
  assert.deepEqual(make('concat'), [1, 2, 3])
  assert.equal(make('count'), 2)
})

test('merge fails on a result that is no object, and names its branch; null has nothing to merge', () => {
  const merge = (...branches: BuiltInNode[]) => play({ type: 'parallel', branches, aggregate: 'merge' }, basics).outcome
  const a = f('echo', { args: { a: 1 } })
  const said = 'root: merge puts objects together, and the result of branches[1]'
  assert.equal(merge(a, f('echo', { id: 'x', args: 'b' })).error, `${said} (x) is a text of 1 characters.`)
  assert.equal(merge(a, f('echo', { args: [1] })).error, `${said} is a list of 1.`)
  assert.deepEqual(merge(a, f('fail')), { status: 'partial', value: { a: 1 }, error: null })
  assert.deepEqual(merge(a, f('echo', { args: '{{input}}' })).value, { a: 1 })
})

test('Compose patterns: each level is given the results before it, and results go up through the levels', () => {
  const root: BuiltInNode = {
    type: 'sequential',
    steps: [
      f('add', { id: 'first' }),
      { type: 'parallel', branches: [f('double'), { type: 'sequential', steps: [f('add'), f('add')] }] },
      f('echo', { args: { sum: '{{previous}}', first: '{{results.first}}', input: '{{input}}' } }),
    ],
  }
  const { outcome } = play(root, basics, 1)
  assert.deepEqual(outcome.value, { sum: [4, 4], first: 2, input: 1 })
})

test('a part that ends partial makes the whole partial, and its value is used', () => {
  const root: BuiltInNode = {
    type: 'sequential',
    steps: [{ type: 'parallel', branches: [f('one'), f('fail')] }, f('echo')],
  }
  assert.deepEqual(play(root, basics).outcome, { status: 'partial', value: [1, null], error: null })
})

test('a loop goes on from its last output until its condition holds or its limit is reached', () => {
  const body = f('add', { id: 'body' })
  const enough = {
    ...basics,
    enough: ({ output, iteration }: { output: number; iteration: number }) => output >= 3 && iteration > 1,
  }
  const told = play({ type: 'loop', body, max_iterations: 9, until: 'enough' }, enough, 0)
  assert.equal(told.outcome.value, 3)
  assert.deepEqual(
    ids(told).filter((id) => id.startsWith('body')),
    ['body', 'body#2', 'body#3'],
  )
  const limited = play({ type: 'loop', body, max_iterations: 4 }, basics, 0)
  assert.equal(limited.outcome.value, 4)
  const broken = play({ type: 'loop', body: f('fail'), max_iterations: 4 }, basics, 0)
  assert.deepEqual([broken.outcome.status, broken.tasks.length], ['failed', 1])
})

test('only true, and a text that begins with true, yes or done, ends a loop and splits a piece', () => {
  const holding = [true, 'true', ' Yes, it is good.', 'done']
  for (const verdict of [
    ...holding,
    false,
    null,
    0,
    1,
    '',
    'no',
    'doneness',
    'not done',
    [],
    [true],
    { done: false },
  ]) {
    const says = { ...basics, says: () => verdict, halve: () => assert.fail('is split') }
    const holds = holding.some((each) => each === verdict)
    const loop = play({ type: 'loop', body: f('add'), max_iterations: 2, until: 'says' }, says, 0)
    assert.equal(loop.outcome.value, holds ? 1 : 2, `until: ${JSON.stringify(verdict)}`)
    const works = { should_split: 'says', split: 'halve', solve: 'one', join: 'one' }
    const fork = play({ type: 'fork_join', problem: 1, workers: 1, stealing: true, ...works }, says)
    assert.equal(fork.outcome.error?.includes('is split') ?? false, holds, `should_split: ${JSON.stringify(verdict)}`)
  }
})

test('Map phase distribution: 1,000 items and 10 workers are 10 parts of 100', () => {
  const items = Array.from({ length: 1_000 }, (_, index) => index)
  const sizes: number[] = []
  const root: BuiltInNode = { type: 'map_reduce', items, workers: 10, map: 'sum', reduce: 'total' }
  const played = play(root, {
    sum: ({ items: part }: { items: number[] }) => {
      sizes.push(part.length)
      return part.reduce((all, each) => all + each, 0)
    },
    total: ({ values }: { values: number[] }) => values.reduce((all, each) => all + each, 0),
  })
  assert.deepEqual(
    sizes,
    Array.from({ length: 10 }, () => 100),
  )
  assert.equal(played.most, 10)
  assert.equal(played.outcome.value, 499_500)
})

test('parts are contiguous, no part is empty, and their lengths differ by one at most', () => {
  for (const [items, count] of [
    [10, 3],
    [3, 10],
    [1, 1],
    [7, 7],
    [100, 8],
  ] as const) {
    const parts = sharesOf(
      Array.from({ length: items }, (_, index) => index),
      count,
    )
    const lengths = parts.map((part) => part.length)
    assert.deepEqual(
      parts.flat(),
      Array.from({ length: items }, (_, index) => index),
    )
    assert.ok(Math.min(...lengths) >= 1 && Math.max(...lengths) - Math.min(...lengths) <= 1, String(lengths))
  }
})

const words: Functions = {
  words: ({ items }: { items: string[] }) => items.flatMap((text) => text.split(' ').map((word) => [word, 1])),
  count: ({ key, values }: { key: string; values: number[] }) => [key, values.length],
  byLength: ({ key, partitions }: { key: string; partitions: number }) => key.length % partitions,
  documents: () => ['a bb a', 'bb ccc', 'a'],
  wrong: () => 99,
}
for (const partition of [undefined, 'hash', 'range', 'byLength'] as const) {
  test(`Reduce phase aggregation: words counted with ${partition ?? 'the default'} partition, in the order of keys`, () => {
    const root = {
      type: 'map_reduce',
      items: 'documents',
      workers: 2,
      reducers: 2,
      map: 'words',
      reduce: 'count',
      ...(partition ? { partition } : {}),
    } as BuiltInNode
    const played = play(root, words)
    assert.deepEqual(played.outcome.value, [
      ['a', 3],
      ['bb', 2],
      ['ccc', 1],
    ])
    assert.ok(ids(played).filter((id) => id.startsWith('root/reduce')).length <= 2)
  })
}

test('Map-reduce with custom partition function: each key goes to the reducer that the function names', () => {
  const root: BuiltInNode = {
    type: 'map_reduce',
    items: ['a bb ccc'],
    workers: 1,
    reducers: 3,
    map: 'words',
    reduce: 'count',
    partition: 'byLength',
  }
  const reduced = play(root, words).tasks.filter((task) => task.id.startsWith('root/reduce'))
  assert.deepEqual(
    reduced.map((task) => [task.id, givenTo(task).map((each) => (each as { key: string }).key)]),
    [
      ['root/reduce 0', ['ccc']],
      ['root/reduce 1', ['a']],
      ['root/reduce 2', ['bb']],
    ],
  )
  const wrong = play({ ...root, partition: 'wrong' }, words)
  assert.match(wrong.outcome.error ?? '', /none of 0 to 2/)
})

test('without items there is no result, and no function is called', () => {
  const root: BuiltInNode = { type: 'map_reduce', items: [], workers: 3, map: 'words', reduce: 'count' }
  const played = play(root, words)
  assert.deepEqual([played.outcome.value, played.tasks.length], [[], 0])
})

const sums: Functions = {
  large: ({ length }: number[]) => length > 100,
  halves: (list: number[]) => [list.slice(0, list.length / 2), list.slice(list.length / 2)],
  tenths: (list: number[]) => sharesOf(list, 10),
  sum: (list: number[]) => list.reduce((all, each) => all + each, 0),
}
test('Fork phase, Join phase: a problem of 1,000 is split into ten that are solved and joined', () => {
  const problem = Array.from({ length: 1_000 }, (_, index) => index)
  const shared = { type: 'fork_join', problem, should_split: 'large', solve: 'sum', join: 'sum', workers: 4 } as const
  const ten = play({ ...shared, split: 'tenths', stealing: true }, sums)
  assert.equal(ten.outcome.value, 499_500)
  assert.equal(ids(ten).filter((id) => id.endsWith('/solve')).length, 10)
  const deep = play({ ...shared, split: 'halves', stealing: true }, sums)
  assert.equal(deep.outcome.value, 499_500)
  assert.equal(ids(deep).filter((id) => id.endsWith('/solve')).length, 16)
  assert.equal(ids(deep).filter((id) => id.endsWith('/join')).length, 15)
})

test('a machine is quick with 10,000 branches and with 10,000 pieces', () => {
  const branches = Array.from({ length: 10_000 }, () => f('one'))
  assert.equal((play({ type: 'parallel', branches }, basics).outcome.value as unknown[]).length, 10_000)
  const problem = Array.from({ length: 8_192 }, () => 1)
  const root: BuiltInNode = {
    type: 'fork_join',
    problem,
    should_split: 'large',
    split: 'halves',
    solve: 'sum',
    join: 'sum',
    workers: 4,
    stealing: true,
  }
  const small = { ...sums, large: ({ length }: number[]) => length > 1 }
  assert.equal(play(root, small).outcome.value, 8_192)
})

test('a leaf that is settled twice, or was never started, changes nothing', () => {
  const root: BuiltInNode = { type: 'sequential', steps: [f('one'), f('two')] }
  const machine = createMachine(root, null, builtInPatterns)
  const [first] = machine.begin()
  const next = machine.settle(first?.id ?? '', { status: 'completed', value: 1 })
  assert.equal(next.length, 1)
  assert.deepEqual(machine.settle(first?.id ?? '', { status: 'completed', value: 9 }), [])
  assert.deepEqual(machine.settle('nobody', { status: 'failed', error: 'x' }), [])
  assert.equal(machine.outcome(), null)
})

test('ids are unique and the same in every replay: for work on many items, nested loops and attempts', () => {
  const work = (name: string) => ({ type: 'task' as const, id: name, function: 'echo' })
  const roots: BuiltInNode[] = [
    { type: 'map_reduce', items: [1, 2, 3, 4], workers: 3, map: work('m'), reduce: work('r') },
    {
      type: 'loop',
      max_iterations: 3,
      body: { type: 'loop', max_iterations: 3, until: { ...work('u'), args: false }, body: work('x') },
    },
    {
      type: 'sequential',
      retry: { max_retries: 2, backoff: 0 },
      steps: [{ type: 'loop', max_iterations: 2, body: work('x') }, f('fail')],
    },
    { type: 'parallel', branches: [work('a'), work('b')], aggregate: work('c') },
  ]
  for (const root of roots) {
    const seen = ids(play(root, basics))
    assert.equal(new Set(seen).size, seen.length, seen.join(' '))
    assert.deepEqual(ids(play(root, basics)), seen)
  }
  const [nested] = roots.slice(1, 2)
  const names = ids(play(nested ?? assert.fail(), basics)).filter((id) => id.startsWith('x'))
  assert.deepEqual(names, ['x', 'x#1#2', 'x#1#3', 'x#2#1', 'x#2#2', 'x#2#3', 'x#3#1', 'x#3#2', 'x#3#3'])
})

test('a problem that is split into more than 100,000 pieces fails at once, with all leaves under way', () => {
  const root: BuiltInNode = {
    type: 'fork_join',
    problem: 1,
    should_split: 'large',
    split: 'split',
    solve: 'solve',
    join: 'join',
    workers: 2,
    stealing: true,
  }
  const machine = createMachine(root, null, builtInPatterns)
  const settle = (id: string, value: unknown) => machine.settle(id, { status: 'completed', value })
  machine.begin()
  settle('root/whole/should_split', true)
  const parts = settle(
    'root/whole/split',
    Array.from({ length: 60_000 }, () => 1),
  )
  assert.equal(parts.length, 60_000)
  settle('root/whole/0/should_split', true)
  settle(
    'root/whole/0/split',
    Array.from({ length: 60_000 }, () => 1),
  )
  assert.match(machine.outcome()?.error ?? '', /more than 100000 pieces/)
  assert.equal(machine.dropped().length, 59_999)
})

test('a loop of 10,000 rounds that need no leaf ends at once', () => {
  const body: BuiltInNode = {
    type: 'map_reduce',
    items: [],
    map: 'add',
    reduce: 'add',
    partition: 'hash',
    workers: 1,
  }
  const begunAt = cpuTime()
  assert.deepEqual(play({ type: 'loop', max_iterations: 10_000, body }, {}).outcome.value, [])
  assert.ok(cpuTime() - begunAt < 1_500, 'the time of a round does not grow with the rounds before it')
})
