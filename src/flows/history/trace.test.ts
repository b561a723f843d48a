import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEvent } from '../../journal/read.ts'
import { type BuiltInNode, builtInPatterns as patterns } from '../machine/built-in-patterns.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import { createMachine } from '../machine/machine.ts'
import { tasksOf, traceOf, traceSchema } from './trace.ts'

const f = (id?: string, more: object = {}): BuiltInNode => ({
  type: 'task',
  function: 'f',
  ...(id ? { id } : {}),
  ...more,
})
const sequence = (...steps: BuiltInNode[]): BuiltInNode => ({ type: 'sequential', steps })
const parallel = (...branches: BuiltInNode[]): BuiltInNode => ({ type: 'parallel', branches })

/** Plays a flow on the machine itself, so that the ids are real. Every event is a second later than the one before. */
function play(root: BuiltInNode, answer: (task: FlowLeaf) => unknown = () => 1, most = 1_000) {
  const machine = createMachine(root, null, patterns)
  const events: JournalEvent[] = []
  const parents = new Map<string, string | null>()
  const say = (kind: string, data: Record<string, unknown>): void => {
    const seq = events.length + 1
    events.push({ seq, kind, data, at: new Date(seq * 1_000) })
  }
  say('flow.started', {})
  const waiting = machine.begin()
  for (let task = waiting.shift(); task && events.length < most; task = waiting.shift()) {
    const { id: task_id, attempt, nodeId: node_id } = task
    parents.set(task_id, task.parentId)
    say('task.started', { task_id, name: node_id ?? 'f', attempt })
    const value = answer(task)
    if (value instanceof Error) say('task.failed', { task_id, attempt, error: value.message })
    else say('task.completed', { task_id, attempt })
    const outcome =
      value instanceof Error
        ? ({ status: 'failed', error: value.message } as const)
        : ({ status: 'completed', value } as const)
    waiting.push(...machine.settle(task_id, outcome))
  }
  const hasEnded = machine.outcome() !== null
  return { root, patterns, events, hasEnded, parents }
}

const waits = (root: BuiltInNode, answer?: (task: FlowLeaf) => unknown): Record<string, string[]> =>
  Object.fromEntries(tasksOf(play(root, answer)).map((task) => [task.id, task.depends_on]))

test('a task that is reported as slow is under way', () => {
  const say = (seq: number, kind: string): JournalEvent => ({ seq, kind, data: { task_id: 'a' }, at: new Date(seq) })
  const events = [say(1, 'task.started'), say(2, 'task.slow')]
  const [task] = tasksOf({ root: f('a'), events, hasEnded: false, patterns })
  assert.deepEqual([task?.status, task?.end_at, task?.busy], ['running', null, 0])
})

test('a task that waits for people is under way, and the wait is no work', () => {
  const say = (second: number, kind: string, more: object = {}): JournalEvent => ({
    seq: second,
    kind,
    data: { task_id: 'a', run_id: 'r', attempt: 1, ...more },
    at: new Date(second * 1_000),
  })
  const until = (...events: JournalEvent[]) => tasksOf({ root: f('a'), events, hasEnded: false, patterns })[0]
  const asked = [
    say(1, 'task.started'),
    say(3, 'task.waiting'),
    say(4, 'task.waiting', { run_id: 's' }),
    say(6, 'task.continued'),
  ]
  const open = until(...asked)
  assert.deepEqual([open?.status, open?.waited, open?.waitingSince], ['running', 0, new Date(3_000)])
  const on = until(...asked, say(10, 'task.continued', { run_id: 's' }))
  assert.deepEqual([on?.status, on?.waited, on?.waitingSince, on?.end_at], ['running', 7_000, null, null])
  const done = until(
    ...asked,
    say(10, 'task.continued', { run_id: 's' }),
    say(11, 'task.completed'),
    say(12, 'task.continued'),
  )
  assert.deepEqual(
    [done?.status, done?.waited, done?.busy, done?.end_at],
    ['completed', 7_000, 3_000, '1970-01-01T00:00:11.000Z'],
  )
  const cut = until(
    ...asked,
    say(9, 'task.failed', { error: 'gone' }),
    say(10, 'task.started'),
    say(12, 'task.completed'),
  )
  assert.deepEqual([cut?.waited, cut?.busy, cut?.waitingSince], [6_000, 4_000, null])
})

test('a task has its start, its end, its attempts and the pattern around it', () => {
  let tries = 0
  const root = sequence(f('a'), f('b', { retry: { max_retries: 1, backoff: 0 } }))
  const recorded = play(root, (task) => (task.id === 'b' && ++tries === 1 ? new Error('not yet') : 1))
  const [a, b] = tasksOf(recorded)
  assert.deepEqual(
    [a?.id, a?.name, a?.kind, a?.parent_id, a?.status, a?.attempts, a?.start_at, a?.end_at, a?.busy],
    ['a', 'a', 'function', 'root', 'completed', 1, '1970-01-01T00:00:02.000Z', '1970-01-01T00:00:03.000Z', 1_000],
  )
  assert.deepEqual(
    [b?.status, b?.attempts, b?.start_at, b?.end_at, b?.busy, b?.error],
    ['completed', 2, '1970-01-01T00:00:04.000Z', '1970-01-01T00:00:07.000Z', 2_000, null],
  )
})

test('Flow execution trace: the trace fits its schema, and the timeline has every event in order', () => {
  const recorded = play(sequence(f('a'), parallel(f(), f())))
  const trace = traceSchema.parse(JSON.parse(JSON.stringify(traceOf(recorded))))
  assert.deepEqual(trace.timeline.map(({ event, task_id }) => [event, task_id]).slice(0, 3), [
    ['flow.started', null],
    ['task.started', 'a'],
    ['task.completed', 'a'],
  ])
  assert.equal(trace.timeline.length, recorded.events.length)
  assert.equal(trace.tasks.length, 3)
})

const agent: BuiltInNode = { type: 'task', agent: 'writer', id: 'w' }

test('agents and functions are told apart at every place of the tree', () => {
  const root = sequence(agent, {
    type: 'map_reduce',
    items: [1],
    workers: 1,
    map: { type: 'task', agent: 'mapper' },
    reduce: 'f',
  })
  const kinds = tasksOf(play(root, (task) => (task.id.includes('map') ? [['k', 1]] : 1))).map((task) => task.kind)
  assert.deepEqual(kinds, ['agent', 'agent', 'function'])
})

test('each step waits for all of the step before it', () => {
  assert.deepEqual(waits(sequence(f('a'), parallel(f('b'), sequence(f('c'), f('d'))), f('e'))), {
    a: [],
    b: ['a'],
    c: ['a'],
    d: ['c'],
    e: ['b', 'd'],
  })
})

test('an aggregate waits for the branches', () => {
  const root: BuiltInNode = { type: 'parallel', branches: [f('a'), f('b')], aggregate: 'sum' }
  assert.deepEqual(waits(root), { a: [], b: [], 'root/aggregate': ['a', 'b'] })
})

test('an iteration waits for the verdict on the iteration before', () => {
  let rounds = 0
  const root: BuiltInNode = { type: 'loop', body: f('x'), max_iterations: 5, until: 'enough' }
  const answer = (task: FlowLeaf): unknown => (task.id.includes('until') ? ++rounds === 2 : 1)
  assert.deepEqual(waits(root, answer), {
    x: [],
    'root/until 1': ['x'],
    'x#2': ['root/until 1'],
    'root/until 2': ['x#2'],
  })
})

test('reducers wait for the mappers, and mappers wait for the items', () => {
  const root: BuiltInNode = { type: 'map_reduce', items: 'load', workers: 2, map: 'f', reduce: 'g', reducers: 1 }
  const answer = (task: FlowLeaf): unknown => (task.id.includes('items') ? [1, 2] : [['k', 1]])
  assert.deepEqual(waits(root, answer), {
    'root/items': [],
    'root/map 0': ['root/items'],
    'root/map 1': ['root/items'],
    'root/reduce 0': ['root/map 0', 'root/map 1'],
  })
})

test('pieces wait for the split, and the join waits for the pieces', () => {
  const root: BuiltInNode = {
    type: 'fork_join',
    problem: 2,
    workers: 1,
    stealing: true,
    should_split: 'is_large',
    split: 'halves',
    solve: 'solve',
    join: 'sum',
  }
  const answer = (task: FlowLeaf): unknown => {
    if (task.id.endsWith('should_split')) return task.id === 'root/whole/should_split'
    return task.id.endsWith('split') ? [1, 1] : 1
  }
  const found = waits(root, answer)
  assert.deepEqual(found['root/whole/split'], ['root/whole/should_split'])
  assert.deepEqual(found['root/whole/1/should_split'], ['root/whole/split'])
  assert.deepEqual(found['root/whole/1/solve'], ['root/whole/1/should_split'])
  assert.deepEqual(found['root/whole/join'], ['root/whole/0/solve', 'root/whole/1/solve'])
})

test('a task depends on tasks of its own attempt; the next step depends on the completed attempt', () => {
  let tries = 0
  const inner: BuiltInNode = { ...sequence(f('a'), f('b')), retry: { max_retries: 1, backoff: 0 } }
  const root = sequence(inner, f('c'))
  const answer = (task: FlowLeaf): unknown => (task.nodeId === 'b' && ++tries === 1 ? new Error('no') : 1)
  assert.deepEqual(waits(root, answer), { a: [], b: ['a'], 'a~2': [], 'b~2': ['a~2'], c: ['b~2'] })
})

const shapes: Record<string, BuiltInNode> = {
  'a leaf alone': f(),
  'a named leaf alone': f('x'),
  'unnamed nodes': sequence(parallel(f(), f()), sequence(f())),
  'named patterns': { ...sequence({ ...parallel(f(), f('x')), id: 'p' }), id: 's' },
  'a loop of named leaves': { type: 'loop', body: sequence(f('x'), f()), max_iterations: 3 },
  'a named loop in a sequence': sequence(f(), {
    type: 'loop',
    id: 'l',
    body: parallel(f('x'), f()),
    max_iterations: 2,
  }),
  'a loop whose body is tried again': {
    type: 'loop',
    max_iterations: 2,
    body: { ...sequence(f('x'), f('boom')), retry: { max_retries: 1, backoff: 0 } },
  },
  'a retried pattern around a pattern with a retry': {
    ...sequence({ ...sequence(f('x'), f('boom')), id: 'inner', retry: { max_retries: 0, backoff: 0 } }),
    retry: { max_retries: 1, backoff: 0 },
  },
  'a retried pattern within a pattern with a retry': {
    ...sequence({ ...parallel(sequence(f('x'), f('boom'))), retry: { max_retries: 1, backoff: 0 } }, f('y')),
    id: 'outer',
    retry: { max_retries: 1, backoff: 0 },
  },
}

for (const [name, root] of Object.entries(shapes)) {
  test(`a task has the same parent as in the machine: ${name}`, () => {
    let booms = 0
    const recorded = play(root, (task) => (task.nodeId === 'boom' && ++booms % 2 === 1 ? new Error('no') : 1))
    assert.deepEqual(
      tasksOf(recorded).map((task) => [task.id, task.parent_id]),
      [...recorded.parents],
    )
  })
}

test('a task that has not begun is pending, and skipped once the flow has ended', () => {
  const root = sequence(f('a'), f('b'), parallel(f('c'), f()))
  const status = (recorded: Parameters<typeof tasksOf>[0]): string[] =>
    tasksOf(recorded).map((task) => `${task.id} ${task.status}`)
  assert.deepEqual(status({ root, events: [], hasEnded: false, patterns }), [
    ...['a pending', 'b pending', 'c pending', 'root/2/1 pending'],
  ])
  const failed = play(root, (task) => (task.id === 'b' ? new Error('broken') : 1))
  assert.deepEqual(status(failed), ['a completed', 'b failed', 'c skipped', 'root/2/1 skipped'])
  assert.equal(tasksOf(failed)[1]?.error, 'broken')
})

test('words of a model in the id of a task are no path', () => {
  const root: BuiltInNode = { type: 'hierarchical', id: 'team', queen: 'q', workers: ['a'], goal: 'x' }
  const ids = ['team/plan 1', 'team/do 1 read/write~2 0', 'team/adjust 1 read/write~2', 'team/review 1']
  const events = ids.map((task_id, seq): JournalEvent => {
    return { seq, kind: 'task.started', data: { task_id, name: 'a', agent: 'a', attempt: 1 }, at: new Date(seq) }
  })
  assert.deepEqual(
    tasksOf({ root, events, hasEnded: false, patterns }).map((task) => [task.parent_id, task.depends_on]),
    [
      ['team', []],
      ['team', ['team/plan 1']],
      ['team', ['team/plan 1']],
      ['team', ['team/do 1 read/write~2 0', 'team/adjust 1 read/write~2']],
    ],
  )
})

test('a task that was skipped before it began has the name of its place in the tree', () => {
  const skipped = { seq: 1, kind: 'task.skipped', data: { task_id: 'root/1' }, at: new Date(1) }
  const [task] = tasksOf({ root: sequence(f('a'), f()), events: [skipped], hasEnded: true, patterns })
  assert.deepEqual([task?.id, task?.name, task?.status], ['root/1', 'f', 'skipped'])
})

test('a task under way has no end, and a task that was skipped after it began has one', () => {
  const root = parallel(f('a'), f('b'))
  const at = (seconds: number): Date => new Date(seconds * 1_000)
  const started = (task_id: string, seq: number): JournalEvent => ({
    seq,
    kind: 'task.started',
    data: { task_id, name: task_id, attempt: 1 },
    at: at(seq),
  })
  const events = [started('a', 1), started('b', 2)]
  assert.deepEqual(
    tasksOf({ root, events, hasEnded: false, patterns }).map((task) => [task.status, task.end_at]),
    [
      ['running', null],
      ['running', null],
    ],
  )
  const skipped = { seq: 3, kind: 'task.skipped', data: { task_id: 'b' }, at: at(3) }
  const b = tasksOf({ root, events: [...events, skipped], hasEnded: true, patterns })[1]
  assert.deepEqual([b?.status, b?.end_at, b?.busy], ['skipped', at(3).toISOString(), 1_000])
})

test('ten thousand tasks that wait for ten thousand others name only a few of them', () => {
  const many = (name: string): BuiltInNode => parallel(...Array.from({ length: 5_000 }, (_, n) => f(`${name}${n}`)))
  const tasks = tasksOf(play(sequence(many('a'), many('b')), undefined, 100_000))
  assert.equal(tasks.length, 10_000)
  const named = tasks.reduce((sum, task) => sum + task.depends_on.length, 0)
  assert.ok(named <= 110_000, `${named}`)
  assert.ok(tasks.slice(5_000).every((task) => task.depends_on.length > 0))
})
